package clients

import (
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/evpn"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// network is a switch as frames on it find their way.
type network struct {
	// hosts are the addresses of ports on the switch.
	hosts map[netip.Addr]intent.MAC
	// routers are the router ports that it is connected to.
	routers []router
}

// router is a router port on the switch.
type router struct {
	mac intent.MAC
	// here are its networks on the switch, beyond those of the router's other ports.
	here, beyond []netip.Prefix
}

func newNetwork(rows *ovn.Rows, datapath ovn.UUID) *network {
	n := &network{hosts: map[netip.Addr]intent.MAC{}}
	for _, p := range rows.PortsOn(datapath) {
		for _, e := range addresses(p) {
			for _, prefix := range e.Prefixes {
				if _, taken := n.hosts[prefix.Addr()]; !taken {
					n.hosts[prefix.Addr()] = e.MAC
				}
			}
		}
	}
	for _, port := range rows.RoutersOn(datapath) {
		own := addresses(port)
		if len(own) == 0 {
			continue
		}
		r := router{mac: own[0].MAC, here: own[0].Prefixes}
		for _, prefix := range own[0].Prefixes {
			n.hosts[prefix.Addr()] = r.mac
		}
		ports := rows.PortsOn(port.Datapath)
		gateway := map[string]bool{} // what goes there is translated on its way
		for _, other := range ports {
			if other.Type == ovn.TypeChassisRedirect {
				gateway[other.Options["distributed-port"]] = true
			}
		}
		for _, other := range ports {
			if other.UUID == port.UUID || other.Type != ovn.TypePatch || gateway[other.LogicalPort] {
				continue
			}
			for _, e := range addresses(other) {
				r.beyond = append(r.beyond, e.Prefixes...)
			}
		}
		n.routers = append(n.routers, r)
	}
	return n
}

// addresses are those of a port; what cannot be read is said where it matters.
func addresses(p ovn.PortBinding) []evpn.PortAddresses {
	list, _ := evpn.ParseMACColumn(p.MAC)
	return list
}

func contains(list []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
}

// way is the MAC address that frames for an address go to.
func (n *network) way(a netip.Addr) (intent.MAC, bool) {
	if mac, here := n.hosts[a]; here {
		return mac, true
	}
	for _, r := range n.routers {
		if contains(r.beyond, a) {
			return r.mac, true
		}
	}
	return intent.MAC{}, false
}

// outside is for loadbalancer.Choose.
func (n *network) outside(a netip.Addr) string {
	if _, ok := n.way(a); ok {
		return ""
	}
	return "neither a port of the switch nor in a network of a router that the switch is connected to"
}

// answer is the MAC address of a VIP, and whether machines have to be told it: the address
// is in a network of the switch, and no port has it, for which OVN would answer.
func (n *network) answer(a netip.Addr) (intent.MAC, bool) {
	for _, r := range n.routers {
		if _, owned := n.hosts[a]; !owned && contains(r.here, a) {
			return r.mac, true
		}
	}
	if mac, ok := n.way(a); ok {
		return mac, false
	}
	if len(n.routers) > 0 {
		return n.routers[0].mac, false
	}
	return intent.MAC{}, false
}
