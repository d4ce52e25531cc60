package exposure

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
)

// balanced are the addresses of VIPs of a gateway port's router, and whether anybody answers
// there: a backend that is not known to be down, OVN in its place, or whoever has the address
// besides. OVN balances them, whatever weights Sluice knows. There are none while it is not
// known which load balancers the router has, and which NAT rows.
type balanced map[netip.Addr]bool

func (t *translation) balanced(router ovn.UUID) balanced {
	if !t.cfg.LoadBalancing {
		return nil
	}
	rows, known := t.rows.BalancersOf(router)
	nats, knownNAT := t.rows.NATOf(router)
	if !known || !knownNAT {
		t.pending = t.pending || t.rows.ExpectsNB()
		return nil
	}
	size, _ := loadbalancer.CloudSize(t.rows.TableSize()) // what is wrong with it is told of by EVPN's part
	out := balanced{}
	for _, row := range rows {
		for _, v := range t.readings.VIPs(row, size, func(error) {}) {
			a := v.Address.Addr()
			out[a] = out[a] || v.Reached()
		}
	}
	for _, n := range nats {
		a, err := netip.ParseAddr(n.ExternalIP)
		if _, vip := out[a.Unmap()]; err == nil && vip && !t.leadsToVIP(n, out) {
			out[a.Unmap()] = true
		}
	}
	return out
}

// silent tells whether an address is one of VIPs alone, at which nobody answers.
func (b balanced) silent(a netip.Addr) bool {
	answers, vip := b[a]
	return vip && !answers
}

// on lists the addresses that are on one of the networks. OVN balances there whatever the
// router's next hops know of them, and Southbound carries those of IPv4 alone.
func (b balanced) on(networks []netip.Prefix) []netip.Addr {
	all := slices.SortedFunc(maps.Keys(b), netip.Addr.Compare)
	return slices.DeleteFunc(all, func(a netip.Addr) bool { return !contain(networks, a) })
}

// leadsToVIP tells whether a NAT row leads to the address of VIPs alone, as that of a floating
// IP of one does: not to a VM, and nothing leaves by it.
func (t *translation) leadsToVIP(n ovn.NAT, vips balanced) bool {
	a, err := netip.ParseAddr(n.LogicalIP)
	if _, vip := vips[a.Unmap()]; err != nil || !vip || n.Type == "snat" {
		return false
	}
	p, there := t.rows.Port(n.LogicalPort)
	return !there || p.Chassis == ""
}
