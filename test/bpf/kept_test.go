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
	var fabric, nic int
	if err := ns.Do(func() error {
		err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "nic"}, PeerName: "nic-peer"})
		for name, index := range map[string]*int{"sluice0-ovs": &fabric, "nic": &nic} {
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
			d, err := ebpf.Load(ebpf.Config{Dir: dir, Node: node(), Log: slog.New(slog.DiscardHandler), Bridges: onePort{overlay}, Limits: fewRows})
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
