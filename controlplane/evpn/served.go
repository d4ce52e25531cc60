package evpn

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
)

var linkLocal6 = netip.MustParsePrefix("fe80::/64")

// AnswersAll tells whether Sluice answers every address of a gateway port's
// networks: no next hop is listed for it, its bridge has no port but OVN's and
// Sluice's, and the node itself has no address of these networks on the bridge:
// br-ex with an address is the default gateway in a DevStack. Then the addresses of the known ports on its provider network
// have to be followed.
func AnswersAll(rows *ovn.Rows, p ovn.GatewayPort, cfg Config) bool {
	if !p.HasLocalnet {
		return false
	}
	network := p.Localnet.Options[optionNetwork]
	if _, listed := cfg.NextHops[network]; listed {
		return false
	}
	if _, listed := p.RouterPort.ExternalIDs[keyNextHops]; listed {
		return false
	}
	bridge, ok := rows.BridgeOf(network)
	return ok && nameGateway(rows, cfg, p).usable() && rows.OnlyOVN(bridge) && !hostIsNeighbour(rows, bridge, p)
}

// hostIsNeighbour tells whether the node itself has an address on the bridge that
// a gateway port's router may ask for.
func hostIsNeighbour(rows *ovn.Rows, bridge string, p ovn.GatewayPort) bool {
	addresses, _ := ovn.ParseMACColumn(macColumn(p)) // a bad element is reported by place
	return len(addresses) > 0 && slices.ContainsFunc(rows.HostAddresses(bridge), func(a netip.Addr) bool {
		return slices.ContainsFunc(addresses[0].Prefixes, func(n netip.Prefix) bool { return n.Contains(a) })
	})
}

// Needs is what this package needs of OVN's rows beyond the routers themselves.
func Needs(cfg Config) ovn.Needs {
	return ovn.Needs{
		Hosts: func(rows *ovn.Rows, i ovn.RouterInterface) bool {
			return nameInterface(rows, i).usable() || cfg.DynamicRouting && rows.Advertises(i.RouterPort)
		},
		NextHopMAC: cfg.NextHopMAC.String(), Advertised: cfg.DynamicRouting, LoadBalancing: cfg.LoadBalancing,
		Neighbours: func(rows *ovn.Rows, p ovn.GatewayPort) bool { return AnswersAll(rows, p, cfg) },
	}
}

// served lists the next hops that are answered for a gateway port: every
// address of its networks, or those that are listed.
func (t *translation) served(p ovn.GatewayPort, key intent.GatewayKey, networks []netip.Prefix, all bool) []intent.Served {
	set := map[netip.Prefix]bool{}
	if all {
		serveAll(key, networks, set)
	} else {
		t.serveListed(p, networks, set)
	}
	out := make([]intent.Served, 0, len(set))
	for prefix, answer := range set {
		out = append(out, intent.Served{Key: intent.ServedKey{Gateway: key, Prefix: prefix}, Answer: answer})
	}
	slices.SortFunc(out, func(a, b intent.Served) int { return comparePrefix(a.Key.Prefix, b.Key.Prefix) })
	return out
}

// serveListed takes the next hops that the configuration lists for the physical
// network, as far as they are on this port's networks, and those that the
// router port itself lists, which have to be.
func (t *translation) serveListed(p ovn.GatewayPort, networks []netip.Prefix, set map[netip.Prefix]bool) {
	for _, a := range t.cfg.NextHops[p.Localnet.Options[optionNetwork]] {
		if onLink(a, networks) && !isOwn(a, networks) {
			set[host(a)] = true
		}
	}
	name := p.RouterPort.LogicalPort
	listed, err := ovn.ParseAddresses(p.RouterPort.ExternalIDs[keyNextHops])
	if err != nil {
		t.fail(kindGateway, name, reason.BadNextHop, fmt.Errorf("external_ids:%s: %w", keyNextHops, err))
	}
	for _, a := range listed {
		switch {
		case isOwn(a, networks):
			t.fail(kindGateway, name, reason.BadNextHop, fmt.Errorf("external_ids:%s: %s is the port's own address", keyNextHops, a))
		case !onLink(a, networks):
			t.fail(kindGateway, name, reason.BadNextHop, fmt.Errorf("external_ids:%s: %s is on no network of the port", keyNextHops, a))
		default:
			set[host(a)] = true
		}
	}
}

// serveAll answers the port's networks, and fe80::/64 beside an IPv6 network,
// except for the port's own, which duplicate address detection asks for. The
// addresses of known ports are denied once for all gateway ports of a segment.
func serveAll(key intent.GatewayKey, networks []netip.Prefix, set map[netip.Prefix]bool) {
	for _, n := range networks {
		set[n.Masked()] = true
		if n.Addr().Is6() {
			set[linkLocal6] = true
		}
	}
	except := func(a netip.Addr) {
		if onLink(a, networks) {
			set[host(a)] = false
		}
	}
	for _, n := range networks {
		except(n.Addr())
	}
	except(key.MAC.LinkLocal())
}

// own lists the gateway port's own addresses that are exposed. Packets that the
// router source-translates carry the same address: where they may belong to a
// network that is not exposed, the address is left alone.
func (t *translation) own(p ovn.GatewayPort, g GatewayResult, networks []netip.Prefix) []netip.Addr {
	if t.nat.pending {
		return nil
	}
	var out []netip.Addr
	for _, n := range networks {
		a := n.Addr()
		if a.IsLinkLocalUnicast() || slices.Contains(out, a) {
			continue
		}
		if t.nat.known && !t.nat.isSource(a) || t.servesDefault(a.Is4(), g) {
			out = append(out, a)
			continue
		}
		t.note(kindGateway, p.Binding.LogicalPort, reason.SNATSource,
			fmt.Sprintf("%s may be the source of translated packets, and the router's default next hop is not served by Sluice", a))
	}
	return out
}

// servesDefault tells whether Sluice serves the router's default next hop. The
// routes are in the Northbound database; without it, the next hops that were
// listed for this port, or the absence of anyone else on the bridge, say so.
func (t *translation) servesDefault(v4 bool, g GatewayResult) bool {
	routes, known := t.rows.StaticRoutesOf(t.out.Router)
	if !known {
		return slices.ContainsFunc(g.Served, func(s intent.Served) bool { return s.Answer && s.Key.Prefix.Addr().Is4() == v4 })
	}
	found := false
	for _, r := range routes {
		dst, err := netip.ParsePrefix(r.IPPrefix)
		if err != nil || dst.Bits() != 0 || dst.Addr().Is4() != v4 {
			continue
		}
		hop, err := netip.ParseAddr(r.Nexthop)
		if err != nil || !t.answered(hop, g) {
			return false
		}
		found = true
	}
	return found
}

// answered follows the rule of intent.Served.
func (t *translation) answered(a netip.Addr, g GatewayResult) bool {
	best, answer := -1, false
	for _, s := range g.Served {
		if s.Key.Prefix.Contains(a) && s.Key.Prefix.Bits() > best {
			best, answer = s.Key.Prefix.Bits(), s.Answer
		}
	}
	if !answer || best == a.BitLen() || g.Provider == "" {
		return answer
	}
	_, known := t.known.on(g.Provider)[a]
	return !known
}

func host(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// onLink tells whether an address is on one of the networks; fe80::/64 is on
// every link with an IPv6 network.
func onLink(a netip.Addr, networks []netip.Prefix) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool {
		return n.Contains(a) || (n.Addr().Is6() && linkLocal6.Contains(a))
	})
}

func isOwn(a netip.Addr, networks []netip.Prefix) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Addr() == a })
}

func comparePrefix(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}
