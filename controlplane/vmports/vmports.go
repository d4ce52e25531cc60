package vmports

import (
	"fmt"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// Interfaces lists those that are of ports, by name: whose devices are looked for. They
// are there before their ports are bound, so that nobody has to wait for a look at devices
// then.
func Interfaces(rows *ovn.Rows) []intent.Interface {
	bridge := rows.IntegrationBridge()
	userspace := rows.Userspace(bridge)
	var out []intent.Interface
	for _, i := range rows.Plugged(bridge) {
		out = append(out, intent.Interface{Name: i.Name, Type: i.Type, Userspace: userspace})
	}
	return out
}

// Lack is why a port has no tap that programs can be put on.
type Lack struct {
	State          status.State
	Reason, Detail string
	// Elsewhere: the port's packets may still be taken by another way than its tap.
	// Otherwise the port is not there yet, or it is not clear which one it is.
	Elsewhere bool
}

// Taps finds the devices of ports.
type Taps struct {
	Rows *ovn.Rows
	// Devices are those that were found for Interfaces, by the Interface's name.
	Devices map[string]intent.TapDevice
	// Here are the ports of VMs on this node, by name.
	Here map[string]ovn.PortBinding
}

// Of finds the device by which a port's frames come in.
func (t Taps) Of(p ovn.PortBinding) (intent.Tap, Lack) {
	if p.Type == ovn.TypeExternal {
		return intent.Tap{}, Lack{status.OK, reason.ExternalPort, "a port of type external has no tap on this node", true}
	}
	carrier, vlan := p.LogicalPort, 0
	if p.ParentPort != "" {
		parent, here := t.Here[p.ParentPort]
		switch {
		case !here:
			return intent.Tap{}, Lack{State: status.Pending, Reason: reason.ParentMissing, Detail: "the port of its trunk, " + p.ParentPort + ", is not bound to this node"}
		case parent.ParentPort != "" || parent.Type != ovn.TypeVIF:
			return intent.Tap{}, Lack{State: status.Error, Reason: reason.BadTag, Detail: "the port of its trunk, " + p.ParentPort + ", has no tap of its own"}
		case p.Tag < 1 || p.Tag > 4094:
			return intent.Tap{}, Lack{State: status.Error, Reason: reason.BadTag, Detail: fmt.Sprintf("tag %d of a subport of %s: want 1..4094", p.Tag, p.ParentPort)}
		}
		carrier, vlan = p.ParentPort, p.Tag
	}
	d, why := t.device(carrier)
	if why.Reason != "" {
		return intent.Tap{}, why
	}
	return intent.Tap{Name: d.Name, IfIndex: d.IfIndex, VLAN: uint16(vlan)}, Lack{}
}

// device is that of the Interface of a port. A port that is plugged anew may have two for
// a while: then the one whose device is there counts.
func (t Taps) device(port string) (intent.TapDevice, Lack) {
	bridge := t.Rows.IntegrationBridge()
	var found []intent.TapDevice
	first := Lack{State: status.Pending, Reason: reason.TapMissing, Detail: fmt.Sprintf("no Interface of bridge %s has external_ids:iface-id=%s", bridge, port)}
	some := false
	for _, a := range t.Rows.Attachments(port) {
		if a.Bridge != bridge {
			continue
		}
		d, why := t.found(a.Interface)
		switch {
		case why.Reason == "":
			found = append(found, d)
		case !some:
			first, some = why, true
		}
	}
	switch len(found) {
	case 0:
		return intent.TapDevice{}, first
	case 1:
		return found[0], Lack{}
	}
	return intent.TapDevice{}, Lack{status.Warning, reason.TapUnknown, fmt.Sprintf("port %[3]s has two devices, %[1]s and %[2]s", found[0].Name, found[1].Name, port), true}
}

// found is the device of an Interface, if it can be relied on.
func (t Taps) found(i ovn.Interface) (intent.TapDevice, Lack) {
	d, looked := t.Devices[i.Name]
	switch {
	case !looked:
		return d, Lack{State: status.Pending, Reason: reason.TapMissing, Detail: "the device of Interface " + i.Name + " has not been looked for yet"}
	case d.Reason == reason.TapMissing:
		return d, Lack{State: status.Pending, Reason: d.Reason, Detail: d.Detail}
	case d.Reason == reason.TapNetdev:
		return d, Lack{status.OK, reason.TapNetdev, d.Detail, true}
	case d.Reason != "":
		return d, Lack{status.Warning, reason.TapUnknown, d.Detail, true}
	case d.IfIndex == 0:
		return d, Lack{State: status.Pending, Reason: reason.TapMissing, Detail: "the device of Interface " + i.Name + " has no index"}
	case d.Name == i.Name && i.IfIndex != 0 && i.IfIndex != d.IfIndex:
		return d, Lack{State: status.Pending, Reason: reason.TapChanged,
			Detail: fmt.Sprintf("%s has index %d in the kernel and %d in Open vSwitch: one of the two has not seen that the device was replaced", d.Name, d.IfIndex, i.IfIndex)}
	}
	return d, Lack{}
}
