package ovn

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/multimap"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

const (
	keyDeviceID    = "neutron:device_id"
	keyNetworkName = "neutron:network_name"
	keyIfaceID     = "iface-id"
	// metadataOwner begins the neutron:device_id of a network's metadata port.
	metadataOwner = "ovnmeta-"
)

// metadataPortKeys are the keys of Port_Binding.external_ids that metadata reads.
var metadataPortKeys = []string{keyDeviceID, keyNetworkName, "neutron:project_id", "neutron:mtu", "neutron:cidrs"}

// Interface is a row of the vswitch database's Interface table. It is followed with
// Needs.VMs only.
type Interface struct {
	UUID UUID
	Name string
	Type string
	// IfIndex is that of the device, as ovs-vswitchd last saw it; 0 when it has none.
	IfIndex uint32
	// IfaceID is external_ids:iface-id: the logical port that the Interface is of.
	IfaceID string
}

// Key is the row's _uuid.
func (i Interface) Key() UUID { return i.UUID }

func (Interface) table() Table { return TableInterface }

// Attachment is an Interface and the bridge that it is on.
type Attachment struct {
	Interface Interface
	Bridge    string
}

// FollowVMs says whether what metadata reads is followed, before any row is there.
func (r *Rows) FollowVMs(yes bool) { r.vms = yes }

// networkPrefix is before a network in the names of Neutron's switches.
const networkPrefix = "neutron-"

// Network is a switch's name as Neutron and people know it: external_ids:name without
// "neutron-", or what the Northbound row is if it has no name.
func (d DatapathBinding) Network() string {
	if n := strings.TrimPrefix(d.ExternalIDs["name"], networkPrefix); n != "" {
		return n
	}
	return string(d.NBUUID())
}

// Network is the network of a port as Neutron writes it to external_ids:neutron:network_name,
// which is there with the port, before the row of its switch is; empty if it does not.
func (r PortBinding) Network() string {
	return strings.TrimPrefix(r.ExternalIDs[keyNetworkName], networkPrefix)
}

// ServedPorts lists the ports that VMs have on this node, or are about to have: of
// VMs and external ones, bound to this chassis or with it as an additional one, by
// name. It is kept with Needs.VMs only.
func (r *Rows) ServedPorts() []PortBinding {
	own, ok := r.OwnChassis()
	if !ok {
		return nil
	}
	return r.byPortName(r.servedAt.All(own.UUID))
}

// MetadataPort is the metadata port of a switch: its localport whose neutron:device_id
// is "ovnmeta-" with the network, the first by name.
func (r *Rows) MetadataPort(datapath UUID) (PortBinding, bool) {
	want := metadataOwner + r.datapaths[datapath].Network()
	for _, p := range r.byPortName(r.localportsOn.All(datapath)) {
		if p.ExternalIDs[keyDeviceID] == want {
			return p, true
		}
	}
	return PortBinding{}, false
}

// Attachments lists the Interfaces of a port that are on a bridge, by name.
func (r *Rows) Attachments(port string) []Attachment {
	var out []Attachment
	for id := range r.ifaceOf.All(port) {
		vsPort, ok := multimap.First(r.portOfIface, id)
		if !ok {
			continue
		}
		if bridge, ok := multimap.First(r.bridgeOfPort, vsPort); ok {
			out = append(out, Attachment{r.interfaces[id], r.bridges[bridge].Name})
		}
	}
	slices.SortFunc(out, func(a, b Attachment) int {
		return cmp.Or(cmp.Compare(a.Interface.Name, b.Interface.Name), cmp.Compare(a.Interface.UUID, b.Interface.UUID))
	})
	return out
}

// Plugged lists the Interfaces of a bridge that have external_ids:iface-id, by name,
// whether a port of that name is bound here or not.
func (r *Rows) Plugged(bridge string) []Interface {
	id, ok := multimap.First(r.bridgeName, bridge)
	if !ok {
		return nil
	}
	var out []Interface
	for _, port := range r.bridges[id].Ports {
		for _, i := range r.vsPorts[port].Interfaces {
			if i := r.interfaces[i]; i.IfaceID != "" {
				out = append(out, i)
			}
		}
	}
	slices.SortFunc(out, func(a, b Interface) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UUID, b.UUID)) })
	return out
}

// Userspace tells whether a bridge is one of the userspace datapath.
func (r *Rows) Userspace(bridge string) bool {
	id, ok := multimap.First(r.bridgeName, bridge)
	return ok && r.bridges[id].DatapathType == "netdev"
}

// isServed tells whether a port of the type can be a VM's.
func isServed(kind string) bool { return kind == TypeVIF || kind == TypeExternal }

// servedHere tells whether a port is among ServedPorts.
func (r PortBinding) servedHere(own UUID) bool {
	return own != "" && isServed(r.Type) && (r.Chassis == own || slices.Contains(r.AdditionalChassis, own))
}

// indexServed keeps the indices of ServedPorts and MetadataPort.
func (r *Rows) indexServed(p PortBinding, put func(index[UUID], UUID)) {
	switch {
	case !r.vms:
	case p.Type == TypeLocalport && strings.HasPrefix(p.ExternalIDs[keyDeviceID], metadataOwner):
		put(r.localportsOn, p.Datapath)
	case isServed(p.Type):
		if p.Chassis != "" {
			put(r.servedAt, p.Chassis)
		}
		for _, c := range p.AdditionalChassis {
			put(r.servedAt, c)
		}
	}
}

// putVSwitch takes a row that says which Interface is where.
func (r *Rows) putVSwitch(c Change) {
	switch c.Table {
	case TableInterface:
		old := store(r.interfaces, c)
		r.ifaceOf.Delete(old.IfaceID, c.UUID)
		r.ifaceBy.Delete(old.Name, c.UUID)
		if i, ok := r.interfaces[c.UUID]; ok && i.IfaceID != "" {
			r.ifaceOf.Add(i.IfaceID, c.UUID)
			r.ifaceBy.Add(i.Name, c.UUID)
		}
	case TablePort:
		for _, id := range r.vsPorts[c.UUID].Interfaces {
			r.portOfIface.Delete(id, c.UUID)
		}
		store(r.vsPorts, c)
		for _, id := range r.vsPorts[c.UUID].Interfaces {
			r.portOfIface.Add(id, c.UUID)
		}
	case TableBridge:
		old := store(r.bridges, c)
		r.bridgeName.Delete(old.Name, c.UUID)
		if b, ok := r.bridges[c.UUID]; ok {
			r.bridgeName.Add(b.Name, c.UUID)
		}
		if !r.vms {
			return
		}
		now := r.bridges[c.UUID].Ports
		for _, id := range beside(old.Ports, now, true) {
			r.bridgeOfPort.Delete(id, c.UUID)
		}
		for _, id := range beside(now, old.Ports, true) {
			r.bridgeOfPort.Add(id, c.UUID)
		}
	}
}

// serves adds the conditions of VMs: their switches and, for metadata, the metadata
// ports of these alone. A switch may have ports on every node of a cloud.
func (d *discovery) serves(own UUID, w Wanted) {
	if !d.needs.VMs {
		return
	}
	sb := w.SB
	sb["Port_Binding"] = append(sb["Port_Binding"], ovsdb.Includes("additional_chassis", ovsdb.UUID(own)))
	networks := map[string]struct{}{}
	for id := range d.rows.servedAt.All(own) {
		p := d.rows.ports[id]
		d.datapaths[p.Datapath] = struct{}{}
		name := p.Network()
		if dp, ok := d.rows.Datapath(p.Datapath); ok {
			name = dp.Network()
		}
		if name != "" {
			networks[name] = struct{}{}
		}
	}
	if d.needs.Metadata {
		sb["SB_Global"] = []ovsdb.Clause{ovsdb.All()}
		for n := range networks {
			sb["Port_Binding"] = append(sb["Port_Binding"], ovsdb.IncludesPair("external_ids", keyDeviceID, metadataOwner+n))
		}
	}
	if d.needs.ACLs {
		d.acls(own, w)
	}
	if d.needs.Clients {
		d.clients(own, w)
	}
}

// concernsVMs tells, before the change is applied, whether it is of what metadata
// reads.
func (r *Rows) concernsVMs(c Change, own UUID) bool {
	if !r.vms {
		return false
	}
	switch c.Table {
	case TablePortBinding:
		old, next := r.ports[c.UUID], asPort(c)
		return old.servedHere(own) || next.servedHere(own) || old.Type == TypeLocalport || next.Type == TypeLocalport
	case TableInterface:
		next, _ := c.New.(Interface)
		return r.interfaces[c.UUID].IfaceID != "" || next.IfaceID != ""
	case TableDatapathBinding, TableBridge, TablePort:
		return true
	case TableACL, TablePortGroup, TableAddressSet, TableNBGlobal, TableLogicalSwitch, TableLogicalSwitchPort:
		return r.aclRows.follows
	}
	return false
}

func asPort(c Change) PortBinding {
	p, _ := c.New.(PortBinding)
	return p
}

// servedMoves tells, before the change is applied, whether a VM comes here or goes,
// or is on another switch than before: so the rows of networks are chosen.
func (r *Rows) servedMoves(c Change, own UUID) bool {
	if !r.vms {
		return false
	}
	old, next := r.ports[c.UUID], asPort(c)
	return old.servedHere(own) != next.servedHere(own) || next.servedHere(own) && old.Datapath != next.Datapath
}
