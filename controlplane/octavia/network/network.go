package network

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
)

const (
	neutronPrefix  = "neutron-"
	keyName        = "neutron:network_name" // of a switch; of a port the switch's name
	keySubnets     = "neutron:subnet_ids"
	keyExternal    = "neutron:is_ext_gw"
	keyPortName    = "neutron:port_name"
	keyCIDRs       = "neutron:cidrs"
	keyProject     = "neutron:project_id"
	optionPort     = "router-port"
	optionPhysical = "network_name"
	keyDeviceOwner = "neutron:device_owner"
	keyOwner       = "sluice:owner"    // of what Sluice made: for what
	keyExcluded    = "sluice:excluded" // of such a port: its address was put into exclude_ips
	configSubnet   = "subnet"
	configExcluded = "exclude_ips"
	configPrefix   = "ipv6_prefix"
	portTypeRouter = "router"
	portLocalnet   = "localnet"

	ipv6PrefixBits  = 64
	derivedIDsSpace = "7f0a9d1e-0d0e-5f0c-9a53-8f1b6c2d4e10"
)

var space = uuid.MustParse(derivedIDsSpace)

// routerPorts finds the switch ports that lead to a router port, by its name.
var routerPorts = northbound.Declare("options", func(r *nb.LogicalSwitchPort) []string {
	if name, ok := r.Options[optionPort]; ok {
		return []string{name}
	}
	return nil
}, nil)

// interfaceSubnets finds router ports by the IDs of subnets that they have an address in.
var interfaceSubnets = northbound.Declare("external_ids", func(r *nb.LogicalRouterPort) []string {
	i := newInterface(r)
	for _, p := range i.Networks {
		i.Subnets = append(i.Subnets, derived(i.Port, p.Masked()))
	}
	return i.Subnets
}, nil)

// ownSubnets finds switches by the IDs of the subnets that their configuration names.
var ownSubnets = northbound.Declare("other_config", func(r *nb.LogicalSwitch) (ids []string) {
	for _, p := range own(r) {
		ids = append(ids, derived(r.UUID, p))
	}
	return ids
}, nil)

// Network is one that ports are on.
type Network struct {
	ID, Name string
	// Switch is the Logical_Switch's name, Row its UUID.
	Switch, Row string
	// Neutron tells that Neutron wrote it: it allocates the network's addresses.
	Neutron bool
	// Physical is the physical network of a provider network; empty if it is none.
	Physical string
}

// Subnet is an address range of a network.
type Subnet struct {
	ID      string
	Network Network
	CIDR    netip.Prefix
	// Gateway is the address of a router in it; invalid for none.
	Gateway netip.Addr
}

// switchColumns are those that Network and Subnets read.
var switchColumns = []string{"name", "external_ids", "other_config"}

// of is a network with the physical network that one of its ports leads to.
func of(r northbound.Reader, ls *nb.LogicalSwitch) Network {
	n := named(ls)
	whole, ok := northbound.Peek[*nb.LogicalSwitch](r, ls.UUID)
	if !ok {
		return n
	}
	for _, id := range whole.Ports {
		// Of hundreds of ports one is that: only it is guarded.
		if lsp, ok := northbound.Peek[*nb.LogicalSwitchPort](r, id); !ok || lsp.Type != portLocalnet {
			continue
		}
		if lsp, ok := northbound.Get[*nb.LogicalSwitchPort](r, id, "type", "options"); ok {
			n.Physical = lsp.Options[optionPhysical]
		}
	}
	return n
}

// named is a network as its switch's row alone has it.
func named(ls *nb.LogicalSwitch) Network {
	n := Network{ID: ls.UUID, Name: ls.Name, Switch: ls.Name, Row: ls.UUID}
	if id, is := strings.CutPrefix(ls.Name, neutronPrefix); is && uuid.Validate(id) == nil {
		n.ID, n.Name, n.Neutron = id, ls.ExternalIDs[keyName], true
	}
	return n
}

// IDOf is the ID of the network that a switch is, of which name and UUID are known.
func IDOf(ls *nb.LogicalSwitch) string { return named(ls).ID }

// All are the networks of a snapshot.
func All(s *northbound.Snapshot) (out []Network) {
	for ls := range northbound.All[*nb.LogicalSwitch](s) {
		out = append(out, of(s, ls))
	}
	return out
}

// Find is the network with an ID.
func Find(r northbound.Reader, id string) (Network, bool) {
	ls, ok := northbound.One(r, northbound.SwitchByName, neutronPrefix+id, switchColumns...)
	if !ok {
		ls, ok = northbound.Get[*nb.LogicalSwitch](r, id, switchColumns...)
	}
	if !ok {
		return Network{}, false
	}
	n := of(r, ls)
	return n, n.ID == id
}

// FindSubnet is the subnet with an ID.
func FindSubnet(r northbound.Reader, id string) (Subnet, bool) {
	if ls, ok := northbound.One(r, ownSubnets, id, switchColumns...); ok {
		return with(Subnets(r, of(r, ls)), id)
	}
	for _, lrp := range northbound.Find(r, interfaceSubnets, id, "name") {
		for _, ls := range SwitchesAt(r, Interface{Port: lrp.Name}) {
			if n, ok := northbound.Get[*nb.LogicalSwitch](r, ls.UUID, switchColumns...); ok {
				if s, ok := with(Subnets(r, of(r, n)), id); ok {
					return s, true
				}
			}
		}
	}
	return Subnet{}, false
}

func with(list []Subnet, id string) (Subnet, bool) {
	i := slices.IndexFunc(list, func(s Subnet) bool { return s.ID == id })
	if i < 0 {
		return Subnet{}, false
	}
	return list[i], true
}

// Subnets are those of a network.
func Subnets(r northbound.Reader, n Network) (out []Subnet) {
	ls, ok := northbound.Get[*nb.LogicalSwitch](r, n.Row, switchColumns...)
	if !ok {
		return nil
	}
	add := func(s Subnet) {
		for i := range out {
			if out[i].CIDR == s.CIDR {
				if !out[i].Gateway.IsValid() {
					out[i].Gateway = s.Gateway
				}
				return
			}
		}
		out = append(out, s)
	}
	interfaces := Interfaces(r, ls)
	for _, i := range interfaces {
		if len(i.Subnets) == len(i.Networks) { // Neutron's: one for one
			for j, p := range i.Networks {
				add(Subnet{ID: i.Subnets[j], Network: n, CIDR: p.Masked(), Gateway: p.Addr()})
			}
		}
	}
	for _, p := range own(ls) {
		add(Subnet{ID: derived(ls.UUID, p), Network: n, CIDR: p})
	}
	for _, i := range interfaces {
		for _, p := range i.Networks {
			add(Subnet{ID: derived(i.Port, p.Masked()), Network: n, CIDR: p.Masked(), Gateway: p.Addr()})
		}
	}
	return out
}

// derived is the ID of a prefix of a switch, by its UUID, or of a router port, by its name.
func derived(of string, p netip.Prefix) string {
	return uuid.NewSHA1(space, []byte(of+" "+p.String())).String()
}

// own are the subnets that the switch's own configuration names, ovn-nb(5).
func own(ls *nb.LogicalSwitch) (out []netip.Prefix) {
	if p, err := netip.ParsePrefix(ls.OtherConfig[configSubnet]); err == nil {
		out = append(out, p.Masked())
	}
	text, _, _ := strings.Cut(ls.OtherConfig[configPrefix], "/")
	if a, err := netip.ParseAddr(text); err == nil && a.Is6() {
		out = append(out, netip.PrefixFrom(a, ipv6PrefixBits).Masked())
	}
	return out
}

// Interface is a router port that a network is connected to.
type Interface struct {
	// Port is the Logical_Router_Port's name, Row its UUID.
	Port, Row string
	Networks  []netip.Prefix // with the router's address
	Subnets   []string       // Neutron's IDs, if it names them
	// Gateway tells that the port leads out of the cloud.
	Gateway bool
}

// interfaceColumns are those of a router port that an Interface is made of.
var interfaceColumns = []string{"name", "networks", "external_ids", "gateway_chassis", "ha_chassis_group"}

// portsOf is the key of a Memo: RouterPorts of a switch, by its UUID.
type portsOf struct{ row string }

// RouterPorts are those of some switch ports, by UUID, that lead to a router. Nothing guards that.
func RouterPorts(r northbound.Reader, ports []string) (out []string) {
	for _, id := range ports {
		if lsp, ok := northbound.Peek[*nb.LogicalSwitchPort](r, id); ok && lsp.Type == portTypeRouter {
			out = append(out, id)
		}
	}
	return out
}

// Interfaces are those of a switch, by UUID of the switch port.
func Interfaces(r northbound.Reader, ls *nb.LogicalSwitch) (out []Interface) {
	// Of hundreds of ports a few are a router's: only these are guarded.
	northbound.Note(r, nb.LogicalSwitchTable, ls.UUID, "ports")
	ports := northbound.Memo(r, portsOf{ls.UUID}, func() []string {
		whole, ok := northbound.Peek[*nb.LogicalSwitch](r, ls.UUID)
		if !ok {
			return nil
		}
		return RouterPorts(r, whole.Ports)
	})
	for _, id := range ports {
		lsp, ok := northbound.Get[*nb.LogicalSwitchPort](r, id, "type", "options")
		if !ok {
			continue
		}
		if lrp, ok := northbound.One(r, northbound.RouterPortByName, lsp.Options[optionPort], interfaceColumns...); ok {
			out = append(out, newInterface(lrp))
		}
	}
	return out
}

// InterfaceOf is the interface that a router port is, by its UUID.
func InterfaceOf(r northbound.Reader, uuid string) (Interface, bool) {
	lrp, ok := northbound.Get[*nb.LogicalRouterPort](r, uuid, interfaceColumns...)
	if !ok {
		return Interface{}, false
	}
	return newInterface(lrp), true
}

// SwitchesAt are the switches that an interface is connected to, with their names.
func SwitchesAt(r northbound.Reader, i Interface) (out []*nb.LogicalSwitch) {
	for _, lsp := range northbound.Find(r, routerPorts, i.Port) {
		out = append(out, northbound.Find(r, northbound.SwitchOfPort, lsp.UUID, "name")...)
	}
	return out
}

// Serves tells whether one of the addresses is in a network of the interface.
func (i Interface) Serves(addresses ...netip.Addr) bool {
	return slices.ContainsFunc(i.Networks, func(p netip.Prefix) bool { return slices.ContainsFunc(addresses, p.Contains) })
}

func newInterface(lrp *nb.LogicalRouterPort) Interface {
	i := Interface{Port: lrp.Name, Row: lrp.UUID, Subnets: strings.Fields(lrp.ExternalIDs[keySubnets])}
	i.Gateway = strings.EqualFold(lrp.ExternalIDs[keyExternal], "true") || len(lrp.GatewayChassis) > 0 || lrp.HaChassisGroup != nil
	for _, text := range lrp.Networks {
		if p, err := netip.ParsePrefix(text); err == nil {
			i.Networks = append(i.Networks, p)
		}
	}
	return i
}
