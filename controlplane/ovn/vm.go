package ovn

import (
	"net/netip"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/multimap"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

// optionRouter is the key of DHCP_Options.options with the default gateway.
const optionRouter = "router"

// LogicalSwitchPort is a row of NB Logical_Switch_Port.
type LogicalSwitchPort struct {
	UUID UUID
	Name string
	// Disabled: the column enabled is there and false. OVN drops all packets then.
	Disabled bool
	// DHCPv4 is a row of DHCP_Options, or empty.
	DHCPv4 UUID
}

// DHCPOptions is a row of NB DHCP_Options.
type DHCPOptions struct {
	UUID UUID
	// Router is options:router, as it was written.
	Router string
}

// Key is the row's _uuid.
func (p LogicalSwitchPort) Key() UUID { return p.UUID }

// Key is the row's _uuid.
func (o DHCPOptions) Key() UUID { return o.UUID }

func (LogicalSwitchPort) table() Table { return TableLogicalSwitchPort }
func (DHCPOptions) table() Table       { return TableDHCPOptions }

// putVM takes a row of what Northbound has of VMs.
func (r *Rows) putVM(c Change) {
	if c.Table == TableDHCPOptions {
		store(r.dhcp, c)
		return
	}
	old := store(r.switchPorts, c)
	r.lspByName.Delete(old.Name, c.UUID)
	if p, ok := r.switchPorts[c.UUID]; ok {
		r.lspByName.Add(p.Name, c.UUID)
	}
}

// SwitchPort is the Northbound row of a VM's port; false when it is not known.
func (r *Rows) SwitchPort(name string) (LogicalSwitchPort, bool) {
	id, ok := multimap.First(r.lspByName, name)
	if !ok {
		return LogicalSwitchPort{}, false
	}
	return r.switchPorts[id], true
}

// DHCPRouters are the default gateways that OVN's DHCP gives to a VM's port,
// as far as that is known: one, or none. DHCPv6 has no such option.
func (r *Rows) DHCPRouters(port string) []netip.Addr {
	p, ok := r.SwitchPort(port)
	if !ok || p.DHCPv4 == "" {
		return nil
	}
	a, err := netip.ParseAddr(strings.TrimSpace(r.dhcp[p.DHCPv4].Router))
	if err != nil || !a.Is4() {
		return nil
	}
	return []netip.Addr{a}
}

// vms adds the conditions of the VMs here that may be exposed.
func (d *discovery) vms(own UUID, nb ovsdb.Conditions) {
	for _, s := range d.rows.ProviderSwitches() {
		if d.needs.Gateways != nil && d.needs.Gateways(d.rows, s) {
			d.everybody(s.Datapath)
		}
	}
	if !d.needs.Exposure {
		return
	}
	options := map[UUID]struct{}{}
	for _, p := range d.rows.VMs(own) {
		if !d.rows.localnets.Has(p.Datapath) && !d.rows.natOfPort.Has(p.LogicalPort) {
			continue
		}
		nb["Logical_Switch_Port"] = append(nb["Logical_Switch_Port"], ovsdb.Equal("name", p.LogicalPort))
		row, _ := d.rows.SwitchPort(p.LogicalPort)
		if _, asked := options[row.DHCPv4]; asked || !ovsdb.UUID(row.DHCPv4).Valid() {
			continue
		}
		options[row.DHCPv4] = struct{}{}
		nb["DHCP_Options"] = append(nb["DHCP_Options"], ovsdb.Equal("_uuid", ovsdb.UUID(row.DHCPv4)))
	}
}
