package tapbalancing

import (
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// network is a switch as its frames are forwarded.
type network struct {
	// hosts are the addresses of ports on the switch.
	hosts map[netip.Addr]intent.MAC
	// routers are the router ports that it is connected to.
	routers []router
}

// router is a router port on the switch.
type router struct {
	mac intent.MAC
	// here are its networks on the switch, beyond those of all ports of the router.
	here []netip.Prefix
	own  ovn.UUID
	// gateway: it is a gateway port. Who has an address of its network is no business of the router.
	gateway bool
	beyond  []side
}

// side is a router port that leads to a network as it is, and the port's networks.
type side struct {
	port     ovn.UUID
	networks []netip.Prefix
}

func (b *build) network(datapath ovn.UUID) *network {
	n := &network{hosts: map[netip.Addr]intent.MAC{}}
	for _, p := range b.rows.PortsOn(datapath) {
		for _, e := range addresses(p) {
			for _, prefix := range e.Prefixes {
				if _, taken := n.hosts[prefix.Addr()]; !taken {
					n.hosts[prefix.Addr()] = e.MAC
				}
			}
		}
	}
	for _, port := range b.rows.RoutersOn(datapath) {
		own := addresses(port)
		if len(own) == 0 {
			continue
		}
		for _, prefix := range own[0].Prefixes {
			n.hosts[prefix.Addr()] = own[0].MAC
		}
		n.routers = append(n.routers, router{
			mac: own[0].MAC, here: own[0].Prefixes, own: port.UUID, gateway: b.gateway(port, datapath), beyond: b.sides(port.Datapath),
		})
	}
	return n
}

// gateway tells whether a router's port on a switch is a gateway port: of a chassis, or of a gateway
// router on a provider network.
func (b *build) gateway(port ovn.PortBinding, network ovn.UUID) bool {
	if port.Type == ovn.TypeL3Gateway {
		_, provider := b.rows.Localnet(network)
		return provider
	}
	return slices.ContainsFunc(b.rows.PortsOn(port.Datapath), func(p ovn.PortBinding) bool {
		return p.Type == ovn.TypeChassisRedirect && p.Options["distributed-port"] == port.LogicalPort
	})
}

// sides lists the ports of a router that lead to networks: not those at gateways, where what
// goes there is translated on its way.
func (b *build) sides(datapath ovn.UUID) []side {
	if list, done := b.beyond[datapath]; done {
		return list
	}
	ports := b.rows.PortsOn(datapath)
	gateway := map[string]bool{}
	for _, p := range ports {
		if p.Type == ovn.TypeChassisRedirect {
			gateway[p.Options["distributed-port"]] = true
		}
	}
	var out []side
	for _, p := range ports {
		if p.Type != ovn.TypePatch || gateway[p.LogicalPort] {
			continue
		}
		s := side{port: p.UUID}
		for _, e := range addresses(p) {
			s.networks = append(s.networks, e.Prefixes...)
		}
		out = append(out, s)
	}
	b.beyond[datapath] = out
	return out
}

// leads tells whether an address is in a network of another port of the router.
func (r router) leads(a netip.Addr) bool {
	return slices.ContainsFunc(r.beyond, func(s side) bool { return s.port != r.own && contains(s.networks, a) })
}

// addresses are those of a port; what cannot be read is said where it matters.
func addresses(p ovn.PortBinding) []ovn.PortAddresses {
	list, _ := ovn.ParseMACColumn(p.MAC)
	return list
}

func contains(list []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
}

// macOf is the MAC address that frames for an address go to. An address of a network of the switch
// that no port has is asked for by its router, as OVN has it after its own balancing: the port
// may be deleted, or yet to come, or its addresses are not known to OVN.
func (n *network) macOf(a netip.Addr) (intent.MAC, bool) {
	if mac, here := n.hosts[a]; here {
		return mac, true
	}
	for _, r := range n.routers {
		if !r.gateway && contains(r.here, a) || r.leads(a) {
			return r.mac, true
		}
	}
	return intent.MAC{}, false
}

// outside is for loadbalancer.Choose.
func (n *network) outside(a netip.Addr) string {
	if _, ok := n.macOf(a); ok {
		return ""
	}
	return "no port's of the switch, and in no network of a router that the switch is connected to"
}

// answer is the MAC address of a VIP, and whether VMs have to be told it: the address
// is in a network of the switch, and no port has it, for which OVN would answer.
func (n *network) answer(a netip.Addr) (intent.MAC, bool) {
	for _, r := range n.routers {
		if _, owned := n.hosts[a]; !owned && contains(r.here, a) {
			return r.mac, true
		}
	}
	if mac, ok := n.macOf(a); ok {
		return mac, false
	}
	if len(n.routers) > 0 {
		return n.routers[0].mac, false
	}
	return intent.MAC{}, false
}
