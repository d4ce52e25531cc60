package metadata

import (
	"fmt"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// Interface is an Interface of the local Open vSwitch database whose device is asked for.
type Interface struct {
	// Name and Type are the columns.
	Name, Type string
	// Userspace: its bridge is one of the userspace datapath.
	Userspace bool
}

// Device is what was found for an Interface.
type Device struct {
	Name    string
	IfIndex uint32
	// Reason and Detail say why there is none: reason.TapMissing, TapUnknown or
	// TapNetdev.
	Reason, Detail string
}

// Interfaces lists those that are of ports, by name: whose devices Step is to be told. They
// are there before their ports are bound, so that nobody has to wait for a look at devices
// then.
func Interfaces(rows *ovn.Rows) []Interface {
	bridge := rows.IntegrationBridge()
	userspace := rows.Userspace(bridge)
	var out []Interface
	for _, i := range rows.Plugged(bridge) {
		out = append(out, Interface{Name: i.Name, Type: i.Type, Userspace: userspace})
	}
	return out
}

// lack is why a port has no tap that can be steered.
type lack struct {
	state       status.State
	why, detail string
	// elsewhere: requests may still come in by the namespace of the port's network.
	// Otherwise the port is not there yet, or it is not clear which one it is.
	elsewhere bool
}

// tap finds the device by which a port's frames come in.
func (b *build) tap(p ovn.PortBinding) (intent.Tap, lack) {
	if p.Type == ovn.TypeExternal {
		return intent.Tap{}, lack{status.OK, reason.ExternalPort, "a port of type external has no tap on this node", true}
	}
	carrier, vlan := p.LogicalPort, 0
	if p.ParentPort != "" {
		parent, here := b.here[p.ParentPort]
		switch {
		case !here:
			return intent.Tap{}, lack{state: status.Pending, why: reason.ParentMissing, detail: "the port of its trunk, " + p.ParentPort + ", is not bound to this node"}
		case parent.ParentPort != "" || parent.Type != ovn.TypeVIF:
			return intent.Tap{}, lack{state: status.Error, why: reason.BadTag, detail: "the port of its trunk, " + p.ParentPort + ", has no tap of its own"}
		case p.Tag < 1 || p.Tag > 4094:
			return intent.Tap{}, lack{state: status.Error, why: reason.BadTag, detail: fmt.Sprintf("tag %d of a subport of %s: want 1..4094", p.Tag, p.ParentPort)}
		}
		carrier, vlan = p.ParentPort, p.Tag
	}
	d, why := b.device(carrier)
	if why.why != "" {
		return intent.Tap{}, why
	}
	return intent.Tap{Name: d.Name, IfIndex: d.IfIndex, VLAN: uint16(vlan)}, lack{}
}

// device is that of the Interface of a port. A port that is plugged anew may have two for
// a while: then the one whose device is there counts.
func (b *build) device(port string) (Device, lack) {
	bridge := b.rows.IntegrationBridge()
	var found []Device
	first := lack{state: status.Pending, why: reason.TapMissing, detail: fmt.Sprintf("no Interface of bridge %s has external_ids:iface-id=%s", bridge, port)}
	some := false
	for _, a := range b.rows.Attachments(port) {
		if a.Bridge != bridge {
			continue
		}
		d, why := b.found(a.Interface)
		switch {
		case why.why == "":
			found = append(found, d)
		case !some:
			first, some = why, true
		}
	}
	switch len(found) {
	case 0:
		return Device{}, first
	case 1:
		return found[0], lack{}
	}
	return Device{}, lack{status.Warning, reason.TapUnknown, fmt.Sprintf("devices %s and %s are both there for port %s", found[0].Name, found[1].Name, port), true}
}

// found is the device of an Interface, if it can be relied on.
func (b *build) found(i ovn.Interface) (Device, lack) {
	d, looked := b.devices[i.Name]
	switch {
	case !looked:
		return d, lack{state: status.Pending, why: reason.TapMissing, detail: "the device of Interface " + i.Name + " has not been looked for yet"}
	case d.Reason == reason.TapMissing:
		return d, lack{state: status.Pending, why: d.Reason, detail: d.Detail}
	case d.Reason == reason.TapNetdev:
		return d, lack{status.OK, reason.TapNetdev, d.Detail, true}
	case d.Reason != "":
		return d, lack{status.Warning, reason.TapUnknown, d.Detail, true}
	case d.IfIndex == 0:
		return d, lack{state: status.Pending, why: reason.TapMissing, detail: "the device of Interface " + i.Name + " has no index"}
	case d.Name == i.Name && i.IfIndex != 0 && i.IfIndex != d.IfIndex:
		return d, lack{state: status.Pending, why: reason.TapChanged,
			detail: fmt.Sprintf("%s has index %d in the kernel and %d in Open vSwitch: one of the two has not seen that the device was made again", d.Name, d.IfIndex, i.IfIndex)}
	}
	return d, lack{}
}
