package evpn

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/reason"
)

// advertised is what SB Advertised_Route says of one router. ovn-northd writes a row
// for each subnet, static route, address of a port, NAT row and load balancer, as
// dynamic-routing-redistribute asks for it, and does not say which of these it is.
type advertised struct {
	// through are the rows by router port.
	through map[ovn.UUID][]advertisement
	// gateways are the router's sides of the gateway ports in the result, in its order.
	gateways []ovn.UUID
	// inner are the networks of interfaces, outer those of all other ports.
	outer, inner []netip.Prefix
	// taken are the prefixes beside the interfaces' networks that have a place. A
	// load balancer's address has a row for each port of the router.
	taken map[netip.Prefix]bool
	left  map[leftOut][]netip.Prefix
}

type advertisement struct {
	prefix netip.Prefix
	// tracked is the port that has the address; without a name for none.
	tracked ovn.PortBinding
}

func (a advertisement) single() bool { return a.prefix.IsSingleIP() }

// leftOut is why routes by way of a port are not taken.
type leftOut struct{ kind, name, why string }

func (t *translation) readAdvertised(gateways []ovn.UUID) {
	t.adv = advertised{through: map[ovn.UUID][]advertisement{}, gateways: gateways, taken: map[netip.Prefix]bool{}, left: map[leftOut][]netip.Prefix{}}
	if !t.cfg.DynamicRouting {
		return
	}
	for _, row := range t.rows.AdvertisedOn(t.out.Router) {
		// northd writes a single address without a length.
		p, err := parseAdvertised(row.IPPrefix)
		if err != nil {
			port, _ := t.rows.PortRow(row.LogicalPort)
			t.note(kindInterface, port.LogicalPort, reason.LeftOut, "Advertised_Route.ip_prefix: "+err.Error())
			continue
		}
		tracked, _ := t.rows.PortRow(row.TrackedPort)
		t.adv.through[row.LogicalPort] = append(t.adv.through[row.LogicalPort], advertisement{p, tracked})
	}
	inward := map[ovn.UUID]bool{}
	for _, i := range t.rows.Interfaces(t.out.Router) {
		inward[i.RouterPort.UUID] = true
		t.adv.inner = append(t.adv.inner, networksOf(i.RouterPort.MAC)...)
	}
	for _, p := range t.rows.PortsOn(t.out.Router) {
		if !inward[p.UUID] {
			t.adv.outer = append(t.adv.outer, networksOf(p.MAC)...)
		}
	}
}

func parseAdvertised(s string) (netip.Prefix, error) {
	if !strings.Contains(s, "/") {
		a, err := netip.ParseAddr(s)
		if err != nil || a.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%q is no IP address", s)
		}
		return host(a.Unmap()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Addr().Is4In6() {
		return p, fmt.Errorf("%q is no IP prefix", s)
	}
	return p.Masked(), nil
}

// networksOf are the networks in a router port's mac column. What cannot be read of
// it is said elsewhere.
func networksOf(column []string) (out []netip.Prefix) {
	list, _ := ovn.ParseMACColumn(column)
	for _, a := range list {
		for _, n := range a.Prefixes {
			out = append(out, n.Masked())
		}
	}
	return out
}

// holds tells whether one of the rows is of a network, or of an address in it.
func holds(n netip.Prefix, rows []advertisement) bool {
	return slices.ContainsFunc(rows, func(r advertisement) bool {
		return r.prefix == n || r.single() && n.Contains(r.prefix.Addr())
	})
}

// onlyGateway is the place of the first gateway port where all name one VNI.
func (t *translation) onlyGateway(name string, rows []advertisement) (int, bool) {
	if len(t.out.Gateways) == 0 {
		t.stranded(name, annotation{})
		return 0, false
	}
	first := t.out.Gateways[0].Gateway.VNI
	for _, g := range t.out.Gateways[1:] {
		if g.Gateway.VNI != first {
			for _, r := range rows {
				t.leave(kindInterface, name, fmt.Sprintf("the router's gateway ports name VNI %d and VNI %d, and the interface none", first, g.Gateway.VNI), r.prefix)
			}
			return 0, false
		}
	}
	return 0, true
}

// advertisedBehind adds what OVN advertises by way of an interface to its exposed
// subnets, of which list may have some already.
func (t *translation) advertisedBehind(i ovn.RouterInterface, rows []advertisement, at int, list []Subnet) []Subnet {
	name := i.Switch.LogicalPort
	if len(rows) == 0 || t.natHolds() {
		return list
	}
	networks := networksOf(i.RouterPort.MAC)
	inside := func(p netip.Prefix) bool {
		return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(p.Addr()) && n.Bits() <= p.Bits() })
	}
	hosts := map[netip.Addr]bool{}
	for _, s := range list {
		for _, h := range s.Hosts {
			hosts[h.Addr] = true
		}
	}
	for _, r := range rows {
		k := slices.IndexFunc(list, func(s Subnet) bool { return s.Prefix == r.prefix })
		switch {
		case k >= 0:
			list[k].Announce = true
		case r.single() && inside(r.prefix):
			if a := r.prefix.Addr(); !hosts[a] && !a.IsLinkLocalUnicast() {
				hosts[a] = true
				object := name
				if r.tracked.LogicalPort != "" {
					object = r.tracked.LogicalPort
				}
				t.locate(object, a, false, list)
			}
		case slices.Contains(networks, r.prefix):
			// Why the network itself is not exposed is said with the network.
		case r.single():
			t.advertisedAddress(kindInterface, name, at, r)
		default:
			list = append(list, t.advertisedRoute(name, r.prefix)...)
		}
	}
	return list
}

// natHolds tells whether NAT has to be known first. Of an interface that holds back
// its networks it is said with them.
func (t *translation) natHolds() bool {
	return t.nat.pending || !t.nat.known && t.cfg.HoldNATUnknown
}

// advertisedRoute takes a static route by way of an interface.
func (t *translation) advertisedRoute(name string, p netip.Prefix) []Subnet {
	overlaps := func(n netip.Prefix) bool { return n.Overlaps(p) }
	switch {
	case t.adv.taken[p]:
		return nil
	case p.Bits() == 0:
		t.leave(kindInterface, name, "a default route", p)
		return nil
	case slices.ContainsFunc(t.adv.inner, overlaps) || slices.ContainsFunc(t.adv.outer, overlaps):
		t.leave(kindInterface, name, "it overlaps a network of the router itself", p)
		return nil
	}
	s := Subnet{Object: name, Prefix: p, Announce: true, Advertised: true}
	if !t.cfg.AnnounceNAT {
		if t.nat.covers(p) {
			t.note(kindInterface, name, reason.NAT, fmt.Sprintf("a NAT row of the router translates %s", p))
			return nil
		}
		s.Blocks = t.nat.within(p)
	}
	t.adv.taken[p] = true
	return []Subnet{s}
}

// advertisedAddress takes a single address that is on no network of the port: a load
// balancer's, or one behind another router. NAT's external addresses look the same,
// and packets of networks that are not exposed carry these as their source.
func (t *translation) advertisedAddress(kind, name string, at int, r advertisement) {
	a := r.prefix.Addr()
	contains := func(n netip.Prefix) bool { return n.Contains(a) }
	switch {
	case t.adv.taken[r.prefix]:
		return
	case slices.ContainsFunc(t.adv.outer, contains):
		t.leave(kind, name, "on the provider network", r.prefix)
		return
	case slices.ContainsFunc(t.adv.inner, contains):
		t.leave(kind, name, "on the network of another interface", r.prefix)
		return
	case !t.nat.known:
		t.leave(kind, name, "it may be the source of translated packets: NAT rows are in the Northbound database, which this node does not follow", r.prefix)
		return
	case slices.Contains(t.nat.sources, a):
		t.leave(kind, name, "it is the source of translated packets", r.prefix)
		return
	}
	if k := slices.Index(t.adv.gateways, r.tracked.UUID); k >= 0 {
		at = k
	}
	t.adv.taken[r.prefix] = true
	g := &t.out.Gateways[at]
	g.Subnets = append(g.Subnets, Subnet{Object: name, Prefix: r.prefix, Announce: true, Advertised: true})
}

// advertisedAt takes what OVN advertises of the gateway ports themselves: load
// balancers' addresses. A subnet or route there is the provider network's.
func (t *translation) advertisedAt() {
	if t.natHolds() {
		return
	}
	for at, id := range t.adv.gateways {
		name := t.out.Gateways[at].Gateway.LogicalPort
		for _, r := range t.adv.through[id] {
			if r.single() {
				t.advertisedAddress(kindGateway, name, at, r)
			} else {
				t.leave(kindGateway, name, "it is the path to the provider network", r.prefix)
			}
		}
	}
}

// leave notes a route that is not taken. The reasons of a port are said at once.
func (t *translation) leave(kind, name, why string, p netip.Prefix) {
	k := leftOut{kind, name, why}
	t.adv.left[k] = append(t.adv.left[k], p)
}

// mostNamed bounds the prefixes that one note names.
const mostNamed = 3

func (t *translation) sayLeft() {
	for k, list := range t.adv.left {
		slices.SortFunc(list, comparePrefix)
		list = slices.Compact(list)
		var words []string
		for _, p := range list[:min(len(list), mostNamed)] {
			words = append(words, p.String())
		}
		text := strings.Join(words, ", ")
		if more := len(list) - mostNamed; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		t.note(k.kind, k.name, reason.LeftOut, fmt.Sprintf("OVN advertises %s: %s", text, k.why))
	}
}
