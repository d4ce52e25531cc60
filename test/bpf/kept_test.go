package bpf_test

import (
	"errors"
	"log/slog"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// onePort is the device of every bridge.
type onePort struct{ ifindex int }

func (p onePort) Port(intent.BridgeKey) (ebpf.Port, bool) {
	return ebpf.Port{IfIndex: uint32(p.ifindex), MTU: 1500}, true
}

// inward are the devices that VRFs on the kernel path are handed to.
type inward map[intent.VNI]int

func (i inward) IfIndex(vni intent.VNI) (int, bool) { n, ok := i[vni]; return n, ok }

// keptKernelPath has rows of VRFs on the kernel path whose devices are not there; with
// those that are, test/kernelpath does the same. The guarded device has no other program:
// clsact has no place for a second one.
func keptKernelPath(t *testing.T, d *ebpf.Dataplane, fabric, guarded int) {
	t.Helper()
	kept := func(what, want string) {
		t.Helper()
		if err := d.Kept(fabric); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	apply(t, d.VRFs(), map[intent.VNI]intent.VRF{blue: {VNI: blue, Index: 2, Path: intent.PathKernel}})
	kept("a VRF is handed to a device that has gone", "VRF 1002 on the kernel path: device 4711 is not there")
	if errs := d.VRFs().Delete(t.Context(), []intent.VNI{blue}); errs != nil {
		t.Fatal(errs)
	}
	kept("without it", "")
	// A row alone: a program cannot be put on a device that has gone.
	if err := d.Guard(ebpf.Guard{IfIndex: 4711, VNI: blue}); err == nil {
		t.Error("a device that is not there is guarded")
	}
	kept("a guarded device has gone", "VRF 1002 on the kernel path: device 4711 is not there")
	kept("and was told of", "")
	if err := d.Guard(ebpf.Guard{IfIndex: guarded, VNI: blue}); err != nil {
		t.Fatal(err)
	}
	kept("a guarded device is down", "VRF 1002 on the kernel path: device guarded is down")
	for _, name := range []string{"guarded", "guarded-peer"} {
		if out, err := exec.Command("ip", "link", "set", name, "up").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	// The kernel notes a moment later that there is a carrier.
	for d.Kept(fabric).Error() == "VRF 1002 on the kernel path: device guarded is down" && t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
	kept("a guarded device has lost its VRF", "VRF 1002 on the kernel path: device guarded is in no VRF")
	if err := d.Unguard(guarded); err != nil {
		t.Fatal(err)
	}
	kept("the device is removed", "")
}

// What is pinned counts as having forwarded only while every device of it has its
// program, and its rows can be read.
func TestKept(t *testing.T) {
	ns, overlay := namespace(t)
	var fabric, nic, guarded int
	if err := ns.Do(func() error {
		var err error
		for _, name := range []string{"nic", "guarded"} {
			err = errors.Join(err, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: name + "-peer"}))
		}
		for name, index := range map[string]*int{"sluice0-ovs": &fabric, "nic": &nic, "guarded": &guarded} {
			l, notThere := netlink.LinkByName(name)
			if notThere != nil {
				return errors.Join(err, notThere)
			}
			*index = l.Attrs().Index
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	dir := bpffs(t)
	g := intent.Gateway{Key: gw, VNI: red, Kind: intent.GatewayCRLRP, LogicalPort: "cr-lrp-red"}
	// Once as a process that has nothing, and once as the next one: a load is long.
	for next, step := range []func(d *ebpf.Dataplane) error{
		func(d *ebpf.Dataplane) error {
			if err := d.Kept(fabric); !errors.Is(err, ebpf.ErrNothingKept) {
				t.Errorf("an empty directory: %v", err)
			}
			apply(t, d.VRFs(), map[intent.VNI]intent.VRF{red: {VNI: red, Index: 1}})
			apply(t, d.Gateways(), map[intent.GatewayKey]intent.Gateway{gw: g})
			apply(t, d.UnderlayDevices(), map[string]intent.UnderlayDevice{"nic": {Name: "nic"}})
			return errors.Join(d.Attach(ebpf.FabricIn, fabric), d.Attach(ebpf.OverlayIn, overlay))
		},
		func(d *ebpf.Dataplane) error {
			if err := d.Kept(fabric); err != nil {
				t.Errorf("whole: %v", err)
			}
			for p, ifindex := range map[ebpf.Program]int{ebpf.FabricIn: fabric, ebpf.OverlayIn: overlay, ebpf.UnderlayIn: nic} {
				if err := d.Detach(p, ifindex); err != nil {
					return err
				}
				if err := d.Kept(fabric); err == nil || errors.Is(err, ebpf.ErrNothingKept) {
					t.Errorf("without %s: %v", p, err)
				}
				if err := d.Attach(p, ifindex); err != nil {
					return err
				}
			}
			keptKernelPath(t, d, fabric, guarded)
			// A device that was made anew has another index.
			l, err := netlink.LinkByIndex(overlay)
			if err == nil {
				err = netlink.LinkDel(l)
			}
			if kept := d.Kept(fabric); kept == nil || errors.Is(kept, ebpf.ErrNothingKept) {
				t.Errorf("without the devices: %v", kept)
			}
			return err
		},
	} {
		err := ns.Do(func() error {
			d, err := ebpf.Load(ebpf.Config{Dir: dir, Node: node(), Log: slog.New(slog.DiscardHandler), Bridges: onePort{overlay}, Devices: inward{blue: 4711}, Limits: fewRows})
			if err != nil {
				return err
			}
			defer d.Close()
			return step(d)
		})
		if err != nil {
			t.Fatalf("process %d: %v", next+1, err)
		}
	}
}
