package underlay

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
)

// Hop is one way to a learned destination, as BGP tells it.
type Hop struct {
	// Addr is the next hop; LinkLocal is set where an IPv6 one came with a second,
	// link-local address (RFC 2545 section 3). Neither has a zone.
	Addr, LinkLocal netip.Addr
	// Neighbor is the session's other end; a link-local one has its link as zone.
	Neighbor netip.Addr
}

// Learned is one destination with all the ways to use together.
type Learned struct {
	Prefix netip.Prefix
	Hops   []Hop
	// Refused is why none of the neighbours' paths is used: one of pkg/reason's. Hops are empty then.
	Refused string
	// Stale: kept while its neighbours restart (RFC 4724).
	Stale bool
}

// Link is a link of the node.
type Link struct {
	Name     string
	Index    int // a link that is made again has another one
	Carrier  bool
	Loopback bool
	// Prefixes are its addresses with the lengths of their networks.
	Prefixes []netip.Prefix
}

// Config is what an operator decides.
type Config struct {
	Accept []Match
	Metric uint32
	// Sources are preferred source addresses; of each family the first that the
	// node has.
	Sources []netip.Addr
}

// Refusal is a learned route that is no row.
type Refusal struct {
	Prefix netip.Prefix
	// Reason is one of pkg/reason's for underlay routes.
	Reason string
}

// Result is what Resolve decides.
type Result struct {
	Rows map[netip.Prefix]intent.UnderlayRoute
	// Refused is by prefix, in order.
	Refused []Refusal
}

// Resolve decides anew.
func Resolve(learned []Learned, links []Link, cfg Config) Result {
	n := newNode(links, cfg)
	out := Result{Rows: make(map[netip.Prefix]intent.UnderlayRoute, len(learned))}
	for _, l := range learned {
		hops, why := n.resolve(l)
		if why != "" {
			out.Refused = append(out.Refused, Refusal{l.Prefix, why})
			continue
		}
		row := intent.UnderlayRoute{Prefix: l.Prefix, Metric: cfg.Metric, Source: n.source6, Hops: hops}
		if l.Prefix.Addr().Is4() {
			row.Source = n.source4
		}
		out.Rows[l.Prefix] = row
	}
	slices.SortFunc(out.Refused, func(a, b Refusal) int {
		if c := a.Prefix.Addr().Compare(b.Prefix.Addr()); c != 0 {
			return c
		}
		return a.Prefix.Bits() - b.Prefix.Bits()
	})
	return out
}

// node is the node as far as the decision looks.
type node struct {
	cfg              Config
	carrier          map[string]bool
	nets             []connected
	own              map[netip.Addr]bool // link-local ones with their links
	source4, source6 netip.Addr
}

// connected is a network that a link is in; a single address is none.
type connected struct {
	prefix netip.Prefix
	link   string
}

func newNode(links []Link, cfg Config) *node {
	n := &node{cfg: cfg, carrier: map[string]bool{}, own: map[netip.Addr]bool{}}
	for _, l := range links {
		n.carrier[l.Name] = l.Carrier
		for _, p := range l.Prefixes {
			n.own[at(p.Addr(), l.Name)] = true
			if !p.IsSingleIP() && !p.Addr().IsLinkLocalUnicast() && !l.Loopback {
				n.nets = append(n.nets, connected{p.Masked(), l.Name})
			}
		}
	}
	// The longest first, as the kernel looks them up.
	slices.SortStableFunc(n.nets, func(a, b connected) int { return b.prefix.Bits() - a.prefix.Bits() })
	for _, a := range cfg.Sources {
		switch {
		case !n.own[a]:
		case a.Is4() && !n.source4.IsValid():
			n.source4 = a
		case a.Is6() && !n.source6.IsValid():
			n.source6 = a
		}
	}
	return n
}

// at is an address with its link, which a link-local one alone needs.
func at(a netip.Addr, link string) netip.Addr {
	if a.Is6() && a.IsLinkLocalUnicast() {
		return a.WithZone(link)
	}
	return a
}

// linkOf is the link that an address is on.
func (n *node) linkOf(a netip.Addr) (string, bool) {
	if a.IsLinkLocalUnicast() {
		return a.Zone(), a.Zone() != ""
	}
	for _, c := range n.nets {
		if c.prefix.Contains(a) {
			return c.link, true
		}
	}
	return "", false
}

func (n *node) resolve(l Learned) (intent.UnderlayHops, string) {
	p := l.Prefix
	if why := cmp.Or(n.refuses(p), l.Refused); why != "" {
		return "", why
	}
	var hops []intent.UnderlayHop
	why := reason.UnderlayUnresolved
	for _, h := range l.Hops {
		if _, near := n.linkOf(h.Neighbor); !near && p.Contains(h.Neighbor) {
			why = reason.UnderlayOwnSession
			continue
		}
		hop, ok := n.place(p, h)
		switch {
		case !ok || n.own[at(hop.Via, hop.Device)]:
		case !n.carrier[hop.Device]:
			why = reason.UnderlayLinkDown
		default:
			hops = append(hops, hop)
		}
	}
	if len(hops) == 0 {
		return "", why
	}
	return intent.NewUnderlayHops(hops...), ""
}

// refuses tells why a destination is none for this node, wherever it leads.
func (n *node) refuses(p netip.Prefix) string {
	a := p.Addr()
	switch {
	case a.IsMulticast() || a.IsLinkLocalUnicast() || a.IsLoopback() || a.IsUnspecified() && p.Bits() > 0:
		return reason.UnderlayNotUnicast
	case !slices.ContainsFunc(n.cfg.Accept, func(m Match) bool { return m.Matches(p) }):
		return reason.UnderlayFiltered
	case p.IsSingleIP() && n.own[a], slices.ContainsFunc(n.nets, func(c connected) bool {
		return c.prefix.Bits() <= p.Bits() && c.prefix.Contains(a)
	}):
		return reason.UnderlayConnected
	}
	return ""
}

// place finds the router and the link of a hop. A link-local address is on the
// session's link. The kernel takes no IPv4 router for an IPv6 destination.
func (n *node) place(p netip.Prefix, h Hop) (intent.UnderlayHop, bool) {
	session, near := n.linkOf(h.Neighbor)
	linkLocal, global := h.LinkLocal, h.Addr
	switch {
	case p.Addr().Is6() && global.Is4():
		global = netip.Addr{}
	case global.IsLinkLocalUnicast():
		linkLocal, global = global, netip.Addr{}
	}
	if on, ok := n.linkOf(global); ok && !(h.Neighbor.IsLinkLocalUnicast() && linkLocal.IsValid()) {
		return intent.UnderlayHop{Via: global, Device: on}, true
	}
	if linkLocal.IsValid() && near {
		return intent.UnderlayHop{Via: linkLocal, Device: session}, true
	}
	return intent.UnderlayHop{}, false
}
