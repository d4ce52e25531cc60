// Package tap finds the network device by which a virtual machine or a pod sends and
// receives: where a program sees its frames first, before Open vSwitch does.
//
// What OVN knows of a port is an Interface of the local vswitch database. Its device is
// the tap itself, unless nova has put a Linux bridge between the two (hybrid plug), or
// unless the device is not the kernel's at all (DPDK, vhost-user).
package tap

import (
	"fmt"
	"sync/atomic"

	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reason"
)

func none(why, format string, args ...any) intent.TapDevice {
	return intent.TapDevice{Reason: why, Detail: fmt.Sprintf(format, args...)}
}

// Finder looks for devices in one network namespace, that of Open vSwitch. It looks at the
// kernel's links once, and again after Forget: a node may have thousands.
type Finder struct {
	ns    netns.Namespace
	links Links
	stale atomic.Bool
}

// New makes a finder. It does no I/O.
func New(ns netns.Namespace) *Finder {
	f := &Finder{ns: ns}
	f.Forget()
	return f
}

// Forget says that links may have changed. It may be called from any goroutine.
func (f *Finder) Forget() { f.stale.Store(true) }

// Find looks for the devices of Interfaces, and has them by the Interface's name. It is called
// by one goroutine at a time.
func (f *Finder) Find(interfaces []intent.Interface) (map[string]intent.TapDevice, error) {
	if f.stale.CompareAndSwap(true, false) {
		err := f.ns.Netlink(func(h *netlink.Handle) error {
			all, err := link.Dump(h.LinkList)
			f.links = Read(all)
			return err
		})
		if err != nil {
			f.Forget()
			return nil, fmt.Errorf("listing links: %w", err)
		}
	}
	out := make(map[string]intent.TapDevice, len(interfaces))
	for _, i := range interfaces {
		out[i.Name] = f.links.Find(i)
	}
	return out, nil
}

// Links is what a namespace has of links.
type Links struct {
	byName  map[string]entry
	byIndex map[int]entry
	ports   map[int][]entry // of a Linux bridge, by its index
}

type entry struct {
	name         string
	index        int
	veth, bridge bool
	master       int
	// peer is the other end's index, in the namespace of elsewhere; -1: this one.
	peer, elsewhere int
}

// Read takes a list of links.
func Read(all []netlink.Link) Links {
	out := Links{byName: map[string]entry{}, byIndex: map[int]entry{}, ports: map[int][]entry{}}
	for _, l := range all {
		a := l.Attrs()
		e := entry{name: a.Name, index: a.Index, veth: l.Type() == "veth", bridge: l.Type() == "bridge", master: a.MasterIndex, peer: a.ParentIndex, elsewhere: a.NetNsID}
		out.byName[e.name], out.byIndex[e.index] = e, e
		if e.master != 0 {
			out.ports[e.master] = append(out.ports[e.master], e)
		}
	}
	return out
}

// Find decides for one Interface:
//
//   - a tap, or another device that is no veth: itself;
//   - a veth whose other end is in another namespace (a pod's): itself;
//   - a veth whose other end is a port of a Linux bridge here (hybrid plug): the bridge's
//     only other port.
//
// What is itself a port of the userspace datapath cannot be used, but the tap behind a
// hybrid plug can.
func (l Links) Find(i intent.Interface) intent.TapDevice {
	e, ok := l.byName[i.Name]
	switch {
	case !ok && i.Userspace && i.Type != "" && i.Type != "system":
		return none(reason.TapNetdev, "an Interface of type %s is no device of the kernel's", i.Type)
	case !ok:
		return none(reason.TapMissing, "there is no device %s", i.Name)
	case i.Type == "internal" || i.Type == "patch":
		// Open vSwitch's own: what is behind one is not a VM, or a container whose
		// frames the device never receives.
		return none(reason.TapUnknown, "an Interface of type %s receives no frames of a VM", i.Type)
	}
	tap := e
	if e.veth && e.elsewhere < 0 {
		var why intent.TapDevice
		if tap, why = l.behind(e); why.Reason != "" {
			return why
		}
	}
	if i.Userspace && tap.index == e.index {
		return none(reason.TapNetdev, "%s is a port of a bridge of the userspace datapath", e.name)
	}
	return intent.TapDevice{Name: tap.name, IfIndex: uint32(tap.index)}
}

// behind is the tap of a hybrid plug, by the end of its veth pair that Open vSwitch has.
func (l Links) behind(e entry) (entry, intent.TapDevice) {
	peer, ok := l.byIndex[e.peer]
	if !ok {
		return entry{}, none(reason.TapUnknown, "the other end of %s is nowhere", e.name)
	}
	bridge, ok := l.byIndex[peer.master]
	if !ok || !bridge.bridge {
		return entry{}, none(reason.TapUnknown, "the other end of %s, %s, is a port of no Linux bridge", e.name, peer.name)
	}
	var others []entry
	for _, p := range l.ports[bridge.index] {
		if p.index != peer.index {
			others = append(others, p)
		}
	}
	if len(others) != 1 {
		return entry{}, none(reason.TapUnknown, "the bridge %s has %d ports besides %s, not one", bridge.name, len(others), peer.name)
	}
	return others[0], intent.TapDevice{}
}
