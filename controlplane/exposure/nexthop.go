package exposure

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// nextHops collects next hops by provider switch.
type nextHops map[ovn.UUID]map[netip.Addr]struct{}

func (n nextHops) add(datapath ovn.UUID, a netip.Addr) {
	if n[datapath] == nil {
		n[datapath] = map[netip.Addr]struct{}{}
	}
	n[datapath][a] = struct{}{}
}

// routes adds those of static routes that a port with these networks asks for.
func (n nextHops) routes(datapath ovn.UUID, routes []ovn.StaticRoute, networks []netip.Prefix) {
	if len(networks) == 0 {
		return
	}
	for _, r := range routes {
		if a, err := netip.ParseAddr(r.Nexthop); err == nil && a.Zone() == "" && reaches(networks, a.Unmap()) {
			n.add(datapath, a.Unmap())
		}
	}
}

// named are the next hops on provider networks that Northbound rows name: those of
// the static routes of routers with a gateway port here, or with a floating IP of a
// VM here, and the default gateways that DHCP gives to the VMs here.
func (t *translation) named(gateways []ovn.GatewayPort) map[ovn.UUID][]netip.Addr {
	sets := nextHops{}
	for _, g := range gateways {
		column := g.Binding.MAC
		if len(column) == 0 {
			column = g.RouterPort.MAC
		}
		list, _ := ovn.ParseMACColumn(column) // a bad element is reported by gatewayObject
		if routes, known := t.rows.StaticRoutesOf(g.Binding.Datapath); known && len(list) > 0 {
			sets.routes(g.Switch.Datapath, routes, list[0].Prefixes)
		}
	}
	routers := map[ovn.UUID]struct{}{}
	for _, p := range t.rows.VMs(t.own) {
		for _, a := range t.rows.DHCPRouters(p.LogicalPort) {
			sets.add(p.Datapath, a) // of a tenant's network nobody asks
		}
		for _, f := range t.rows.FloatingIPs(p.LogicalPort) {
			if _, done := routers[f.Router]; !done {
				routers[f.Router] = struct{}{}
				t.behind(f, sets)
			}
		}
	}
	out := map[ovn.UUID][]netip.Addr{}
	for datapath, set := range sets {
		out[datapath] = slices.SortedFunc(maps.Keys(set), netip.Addr.Compare)
	}
	return out
}

// behind adds the next hops of a floating IP's router.
func (t *translation) behind(f ovn.FloatingIP, sets nextHops) {
	for _, lrp := range f.RouterPorts {
		side, ok := t.rows.PeerNaming(lrp.Name)
		if !ok {
			continue
		}
		var networks []netip.Prefix
		for _, text := range lrp.Networks {
			if n, err := netip.ParsePrefix(text); err == nil {
				networks = append(networks, n)
			}
		}
		sets.routes(side.Datapath, f.StaticRoutes, networks)
	}
}

// gatewaysOf are the named next hops of a provider network that Sluice answers for:
// all, where nobody else is on its bridge, but those that a port of the switch or the
// node itself has.
func (t *translation) gatewaysOf(s ovn.ProviderSwitch) []netip.Addr {
	if len(t.routed[s.Datapath]) == 0 || !t.cfg.answers(t.rows, s) {
		return nil
	}
	if kept, made := t.gateways[s.Datapath]; made {
		return kept
	}
	taken := map[netip.Addr]struct{}{}
	for _, p := range t.rows.PortsOn(s.Datapath) {
		peer, _ := t.rows.Peer(p)
		for _, element := range slices.Concat(p.MAC, p.NATAddresses, peer.MAC) {
			list, _ := ovn.ParseMACColumn([]string{element}) // what can be read of it
			for _, a := range list {
				for _, n := range a.Prefixes {
					taken[n.Addr()] = struct{}{}
				}
			}
		}
		vips, _ := ovn.ParseCIDRs(p.Options[optionVirtualIP])
		for _, n := range vips {
			taken[n.Addr()] = struct{}{}
		}
	}
	var free []netip.Addr
	for _, a := range t.routed[s.Datapath] {
		if _, has := taken[a]; !has && !t.rows.IsHostAddress(a) {
			free = append(free, a)
		}
	}
	t.gateways[s.Datapath] = free
	return free
}

// hops are the next hops to answer for: those that the port and the configuration
// list, and of a family of which none is listed those that are known.
func (b *build) hops(o object) []netip.Addr {
	listed := slices.Concat(o.hops, b.cfg.NextHops[o.provider.Network])
	out := listed
	for _, a := range b.gatewaysOf(o.provider) {
		if !slices.ContainsFunc(listed, func(l netip.Addr) bool { return l.Is4() == a.Is4() }) {
			out = append(out, a)
		}
	}
	return out
}

// serve answers ARP and ND for the next hops of an object.
func (b *build) serve(o object) {
	key, any := o.key(), false
	g := wanted.Rows(b.tables, intent.Gateways)[key]
	for _, a := range b.hops(o) {
		self := slices.ContainsFunc(o.selves, func(p netip.Prefix) bool { return p.Addr() == a })
		if a == o.addr || self || !reaches(o.own, a) {
			continue
		}
		p := netip.PrefixFrom(a, a.BitLen())
		k := intent.ServedKey{Gateway: key, Prefix: p}
		wanted.Put(b.tables, intent.ServedNextHops, intent.Served{Key: k, Answer: true})
		any = any || a.Is4() == o.addr.Is4()
		// The first that is listed is the source of ICMP errors towards OVN; a
		// link-local source would not get past a router.
		switch {
		case a.Is4():
			b.steer(o, intent.SteerARP, p)
			if g.ICMPSource4 == b.cfg.ICMPSource4 {
				g.ICMPSource4 = a
			}
		default:
			b.steer(o, intent.SteerND, p)
			if g.ICMPSource6 == b.cfg.ICMPSource6 && !a.IsLinkLocalUnicast() {
				g.ICMPSource6 = a
			}
		}
	}
	wanted.Put(b.tables, intent.Gateways, g)
	if !any {
		b.hopless(o)
	}
}

// hopless tells of a network, once for each family.
func (b *build) hopless(o object) {
	name := o.provider.Network + " IPv6"
	if o.addr.Is4() {
		name = o.provider.Network + " IPv4"
	}
	if _, told := b.without[name]; told {
		return
	}
	b.without[name] = struct{}{}
	b.say(status.OK, kindNetwork, name, reason.NoNextHop,
		"no next hop of the network is served (fabric.nextHops): answers of its addresses leave by the network's own gateway")
}

// reaches tells whether a port with these networks asks for an address. Those of
// VMs are not known; they ask for their gateway.
func reaches(networks []netip.Prefix, a netip.Addr) bool {
	if len(networks) == 0 {
		return true
	}
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool {
		return n.Addr() != a && (n.Contains(a) || n.Addr().Is6() && a.Is6() && a.IsLinkLocalUnicast())
	})
}
