package bpf_test

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// devices are those of VRFs on the kernel path.
type devices map[intent.VNI]int

func (d devices) IfIndex(vni intent.VNI) (int, bool) { i, ok := d[vni]; return i, ok }

const (
	gone     = 4242
	onKernel = intent.VNI(2001)
	lost     = intent.VNI(2002)
	// behind shares its row of the front with another VRF, and is looked up in the map.
	behind = onKernel + 16384
)

func kernelWorld(t *testing.T, dir string, there devices) *ebpf.Dataplane {
	d := load(t, ebpf.Config{Dir: dir, Node: node(), Devices: there, Limits: fewRows})
	apply(t, d.VRFs(), map[intent.VNI]intent.VRF{onKernel: {VNI: onKernel, Index: 4, Path: intent.PathKernel}})
	apply(t, d.VRFs(), map[intent.VNI]intent.VRF{
		lost: {VNI: lost, Index: 5, Path: intent.PathKernel}, behind: {VNI: behind, Index: 6, Path: intent.PathKernel},
		red: {VNI: red, Index: 1},
	})
	apply(t, d.VTEPs(), map[netip.Addr]intent.VTEP{peer4: {Addr: peer4}, peer6: {Addr: peer6}})
	return d
}

// What comes for a VRF on the kernel path is handed to its device as it is, if a
// known VTEP sent it, and whatever it is.
func TestKernelPathRows(t *testing.T) {
	dir := bpffs(t)
	there := devices{onKernel: lo, lost: gone, behind: lo}
	d := kernelWorld(t, dir, there)
	same := func(t *testing.T, in, out gopacket.Packet) {
		if string(in.Data()) != string(out.Data()) {
			t.Errorf("the frame was changed:\n%x\n%x", in.Data(), out.Data())
		}
	}
	to := func(b []byte, vni intent.VNI) ebpf.TraceRequest { return via(fromFabric(b), peer4, vni) }
	handed := &ebpf.Step{What: ebpf.StepKernel, Value: lo}
	question := arp("10.20.0.9", "10.10.0.5", 1)
	runRows(t, dir, d, []row{
		{name: "IPv4", in: to(in4("10.20.0.9", "10.10.0.5"), onKernel), out: lo, step: handed, check: same},
		{name: "IPv6", in: to(in6("fd00:20::9", "fd00:10::5"), onKernel), out: lo, step: handed, check: same},
		{name: "from an IPv6 VTEP", in: via(fromFabric(in6("fd00:20::9", "fd00:10::5")), peer6, onKernel), out: lo, step: handed, check: same},
		{name: "the last hop", in: to(ttl(in4("10.20.0.9", "10.10.0.5"), 1), onKernel), out: lo, step: handed, check: same},
		{name: "no packet of IP", in: to(question, onKernel), out: lo, step: handed, check: same},
		{name: "not in the front", in: to(in4("10.20.0.9", "10.10.0.5"), behind), out: lo, step: handed, check: same},
		{name: "a stranger", in: via(fromFabric(in4("10.20.0.9", "10.10.0.5")), peer4b, onKernel), drop: drop.UnknownVTEP},
		{name: "its device is gone", in: to(in4("10.20.0.9", "10.10.0.5"), lost), drop: drop.NoKernelDevice, step: &ebpf.Step{What: ebpf.StepKernel, Value: gone}},
		{name: "another VRF is not", in: via(fromFabric(in6("fd00:20::9", "fd00:10::5")), peer6, red), drop: drop.NoRoute},
	})
}

// A path is a change of the VRF's row in place; a device that is another one now
// shows as a difference.
func TestKernelPathRowsAreReadBack(t *testing.T) {
	dir := bpffs(t)
	there := devices{onKernel: lo, lost: gone, behind: lo}
	d := kernelWorld(t, dir, there)
	want := map[intent.VNI]intent.VRF{
		onKernel: {VNI: onKernel, Index: 4, Path: intent.PathKernel}, lost: {VNI: lost, Index: 5, Path: intent.PathKernel},
		behind: {VNI: behind, Index: 6, Path: intent.PathKernel}, red: {VNI: red, Index: 1},
	}
	list := func(d *ebpf.Dataplane) {
		t.Helper()
		if got, err := d.VRFs().List(context.Background()); err != nil || !maps.Equal(got, want) {
			t.Errorf("listed %+v, %v; want %+v", got, err, want)
		}
	}
	list(d)
	there[lost] = gone + 1
	want[lost] = intent.VRF{}
	list(d)
	delete(there, lost)
	list(d)
	var errs []error = d.VRFs().Apply(context.Background(), []reconcile.Row[intent.VNI, intent.VRF]{
		{Key: lost, Value: intent.VRF{VNI: lost, Index: 5, Path: intent.PathKernel}}})
	if len(errs) != 1 || !errors.Is(errs[0], reconcile.ErrNotReady) {
		t.Errorf("without a device: %v", errs)
	}
	// A new process repeats the rows in the front.
	d.Close()
	d = load(t, ebpf.Config{Dir: dir, Node: node(), Devices: there, Limits: fewRows})
	list(d)
	runRows(t, dir, d, []row{{name: "after a restart", in: via(fromFabric(in4("10.20.0.9", "10.10.0.5")), peer4, onKernel), out: lo}})
	apply(t, d.VRFs(), map[intent.VNI]intent.VRF{onKernel: {VNI: onKernel, Index: 4}, red: {VNI: red, Index: 1, Path: intent.PathEBPF}})
	want[onKernel] = intent.VRF{VNI: onKernel, Index: 4}
	list(d)
	runRows(t, dir, d, []row{{name: "back", in: via(fromFabric(in4("10.20.0.9", "10.10.0.5")), peer4, onKernel), drop: drop.NoRoute}})
}
