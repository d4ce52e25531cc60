package bpf_test

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// onePort is the device of every bridge.
type onePort struct{ ifindex int }

func (p onePort) Port(intent.BridgeKey) (ebpf.Port, bool) {
	return ebpf.Port{IfIndex: uint32(p.ifindex), MTU: 1500}, true
}

// What is pinned counts as having forwarded only while every device of it has its
// program, and its rows can be read.
func TestKept(t *testing.T) {
	ns, overlay := namespace(t)
	var fabric int
	if err := ns.Do(func() error {
		l, err := netlink.LinkByName("sluice0-ovs")
		if err == nil {
			fabric = l.Attrs().Index
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	dir := bpffs(t)
	g := intent.Gateway{Key: gw, VNI: red, Kind: intent.GatewayCRLRP, LogicalPort: "cr-lrp-red"}
	// within loads as a process does that starts, and ends it again.
	within := func(f func(d *ebpf.Dataplane) error) error {
		return ns.Do(func() error {
			d, err := ebpf.Load(ebpf.Config{Dir: dir, Node: node(), Log: slog.New(slog.DiscardHandler), Bridges: onePort{overlay}})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			return f(d)
		})
	}
	kept := func() error { return within(func(d *ebpf.Dataplane) error { return d.Kept(fabric) }) }
	if err := kept(); !errors.Is(err, ebpf.ErrNothingKept) {
		t.Errorf("an empty directory: %v", err)
	}
	attach := func() {
		t.Helper()
		if err := within(func(d *ebpf.Dataplane) error {
			apply(t, d.VRFs(), map[intent.VNI]intent.VRF{red: {VNI: red, Index: 1}})
			apply(t, d.Gateways(), map[intent.GatewayKey]intent.Gateway{gw: g})
			return errors.Join(d.Attach(ebpf.FabricIn, fabric), d.Attach(ebpf.OverlayIn, overlay))
		}); err != nil {
			t.Fatal(err)
		}
	}
	attach()
	if err := kept(); err != nil {
		t.Errorf("whole: %v", err)
	}
	for _, p := range []struct {
		program ebpf.Program
		ifindex int
	}{{ebpf.FabricIn, fabric}, {ebpf.OverlayIn, overlay}} {
		if err := within(func(d *ebpf.Dataplane) error { return d.Detach(p.program, p.ifindex) }); err != nil {
			t.Fatal(err)
		}
		if err := kept(); err == nil || errors.Is(err, ebpf.ErrNothingKept) {
			t.Errorf("without %s: %v", p.program, err)
		}
		attach()
	}
	// A device that was made anew has another index.
	if err := ns.Do(func() error {
		l, err := netlink.LinkByName("sluice0")
		if err == nil {
			err = netlink.LinkDel(l)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := kept(); err == nil || errors.Is(err, ebpf.ErrNothingKept) {
		t.Errorf("without the devices: %v", err)
	}
}
