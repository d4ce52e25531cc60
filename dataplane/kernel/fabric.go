package kernel

import (
	"context"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// FabricName is the device that every VXLAN packet of the fabric goes through.
const FabricName = "sluice-vxlan"

const fabricMark = "sluice:fabric"

// fabricMAC is what the device is created with, and known by until it has its mark.
var fabricMAC = intent.MAC{0xfe, 0x73, 0x6c, 0x75, 0xff, 0xff}

// fabricAddress is the device's own address. It is not the router MAC, so that a
// packet of the fabric is never for this host (PACKET_HOST). And no two nodes have
// the same: it is the source of what the kernel path sends, and a VXLAN device takes
// a frame from its own address for one that came around a loop.
func fabricAddress(router intent.MAC) intent.MAC {
	if router.IsZero() {
		return fabricMAC
	}
	router[0] ^= 0xfc // the two bits below say that it is one station's, and who gave it
	return router
}

// Limits of FabricConfig.
const (
	// DefaultPort is VXLAN's (RFC 7348 section 8).
	DefaultPort = 4789
	// DefaultFabricMTU leaves room for the outer headers in an IP packet: the
	// device never is the narrow place, the next hop's MTU is.
	DefaultFabricMTU = 65000
)

// FabricConfig is what a Fabric is told.
type FabricConfig struct {
	Namespace netns.Namespace
	// Port is the UDP port; 0 means DefaultPort.
	Port uint16
	// RouterMAC is the node's router MAC: the device's own address comes of it.
	RouterMAC intent.MAC
	// MTU of the device in bytes; 0 means DefaultFabricMTU.
	MTU int
	// Attach must not be nil.
	Attach Attach
}

// Fabric makes and removes sluice-vxlan.
type Fabric struct {
	config FabricConfig
}

// NewFabric does no I/O.
func NewFabric(config FabricConfig) *Fabric {
	if config.Port == 0 {
		config.Port = DefaultPort
	}
	if config.MTU == 0 {
		config.MTU = DefaultFabricMTU
	}
	return &Fabric{config: config}
}

// Ensure makes the device, or checks and corrects the one that is there, and
// returns its ifindex. VXLAN devices of VRFs that are Sluice's lose the UDP port to
// it. The errors to tell apart: reconcile.ErrForeign and *PortHeldError. After any
// error of a new device it is left down.
func (f *Fabric) Ensure(ctx context.Context) (ifindex int, err error) {
	ifindex, _, err = f.ensure(ctx, false)
	return ifindex, err
}

// Prepare is Ensure, but where VXLAN devices of VRFs that are Sluice's have the UDP
// port: then the device is left down beside them, and waits. Ensure changes over.
func (f *Fabric) Prepare(ctx context.Context) (ifindex int, waits bool, err error) {
	return f.ensure(ctx, true)
}

func (f *Fabric) ensure(ctx context.Context, yield bool) (ifindex int, waits bool, err error) {
	err = f.config.Namespace.Netlink(func(h *netlink.Handle) error {
		l, err := f.device(h)
		if err != nil {
			return err
		}
		ifindex = l.Attrs().Index
		waits, err = f.finish(ctx, h, l, yield)
		return err
	})
	if err != nil {
		return 0, false, fmt.Errorf("device %s: %w", FabricName, err)
	}
	return ifindex, waits, nil
}

// device finds or creates the link.
func (f *Fabric) device(h *netlink.Handle) (netlink.Link, error) {
	l, err := find(h, FabricName)
	if err != nil {
		return nil, err
	}
	if l != nil && !has(l, fabricMark) && !unfinished(l, "vxlan", fabricMAC) {
		return nil, reconcile.ErrForeign
	}
	if l != nil && has(l, fabricMark) && f.usable(l) {
		return l, nil
	}
	// Asked before anything goes: what is there works on, whoever has the port.
	if err := portHolder(h, f.config.Port); err != nil {
		return nil, err
	}
	if l != nil {
		if err := h.LinkDel(l); err != nil {
			return nil, fmt.Errorf("removing the old device: %w", err)
		}
	}
	return f.create(h)
}

// usable tells whether a device of ours can be kept: the rest can be changed
// under traffic, these cannot.
func (f *Fabric) usable(l netlink.Link) bool {
	v, ok := l.(*netlink.Vxlan)
	return ok && v.FlowBased && !v.Learning && v.Port == int(f.config.Port)
}

func (f *Fabric) create(h *netlink.Handle) (netlink.Link, error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr = FabricName, hardware(fabricMAC)
	// Peers may send UDP over IPv6 without checksum (RFC 6935).
	v := &netlink.Vxlan{LinkAttrs: attrs, FlowBased: true, Port: int(f.config.Port), UDPCSum: true, UDP6ZeroCSumRx: true}
	if err := h.LinkAdd(v); err != nil {
		return nil, fmt.Errorf("creating it: %w", err)
	}
	l, err := find(h, FabricName)
	if err != nil {
		return nil, err
	}
	if l == nil {
		return nil, errors.New("it has gone since it was created")
	}
	if err := h.LinkAddAltName(l, fabricMark); err != nil {
		return nil, fmt.Errorf("marking it: %w", err)
	}
	return l, nil
}

func (f *Fabric) finish(ctx context.Context, h *netlink.Handle, l netlink.Link, yield bool) (waits bool, err error) {
	knobs, err := fabricKnobs(h, l)
	if err != nil {
		return false, err
	}
	// First: an MTU too small for IPv6 takes its sysctls away.
	if l.Attrs().MTU != f.config.MTU {
		if err := h.LinkSetMTU(l, f.config.MTU); err != nil {
			return false, fmt.Errorf("setting MTU %d: %w", f.config.MTU, err)
		}
	}
	if err := settle(h, l, knobs); err != nil {
		return false, err
	}
	if mac := fabricAddress(f.config.RouterMAC); string(l.Attrs().HardwareAddr) != string(mac[:]) {
		if err := h.LinkSetHardwareAddr(l, hardware(mac)); err != nil {
			return false, fmt.Errorf("setting the address %s: %w", mac, err)
		}
	}
	// Programs first: a device that is up without them would hand tenants'
	// packets to the host.
	if err := f.config.Attach(ctx, FabricName, l.Attrs().Index); err != nil {
		return false, fmt.Errorf("attaching programs: %w", err)
	}
	if up(l) {
		return false, nil
	}
	s, err := takeSnapshot(h)
	if err != nil {
		return false, err
	}
	carriers := s.carriers(f.config.Port)
	if yield && len(carriers) > 0 {
		return true, nil
	}
	return false, changeOver(h, carriers, []netlink.Link{l}, f.config.Port)
}

// Remove deletes the device if it is ours.
func (f *Fabric) Remove() error {
	return f.config.Namespace.Netlink(func(h *netlink.Handle) error {
		l, err := find(h, FabricName)
		if err != nil || l == nil {
			return err
		}
		if !has(l, fabricMark) && !unfinished(l, "vxlan", fabricMAC) {
			return fmt.Errorf("device %s: %w", FabricName, reconcile.ErrForeign)
		}
		if err := h.LinkDel(l); err != nil {
			return fmt.Errorf("removing device %s: %w", FabricName, err)
		}
		return nil
	})
}

// Exists tells whether the device is there and ours.
func (f *Fabric) Exists() (bool, error) {
	var ok bool
	err := f.config.Namespace.Netlink(func(h *netlink.Handle) error {
		l, err := find(h, FabricName)
		ok = err == nil && l != nil && (has(l, fabricMark) || unfinished(l, "vxlan", fabricMAC))
		return err
	})
	return ok, err
}
