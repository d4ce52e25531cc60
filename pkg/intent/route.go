package intent

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// RouteKey is a destination in a VRF.
type RouteKey struct {
	VNI VNI
	// Prefix is masked and not IPv4-mapped; a host is a /32 or /128.
	Prefix netip.Prefix
}

// NewRouteKey canonicalises the prefix.
func NewRouteKey(vni VNI, p netip.Prefix) RouteKey {
	if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
	}
	return RouteKey{VNI: vni, Prefix: netip.PrefixFrom(p.Addr().WithZone(""), p.Bits()).Masked()}
}

// NewHostKey is the key of a single address.
func NewHostKey(vni VNI, a netip.Addr) RouteKey {
	a = a.Unmap().WithZone("")
	return RouteKey{VNI: vni, Prefix: netip.PrefixFrom(a, a.BitLen())}
}

// LongestMatch is what at has for the longest prefix that covers p, which may be p itself.
func LongestMatch[V any](p netip.Prefix, at func(netip.Prefix) (V, bool)) (match V, ok bool) {
	for bits := p.Bits(); bits >= 0; bits-- {
		around, err := p.Addr().Prefix(bits)
		if err != nil {
			break
		}
		if match, ok = at(around); ok {
			return match, true
		}
	}
	return *new(V), false
}

// IsHost tells whether the destination is one address.
func (k RouteKey) IsHost() bool { return k.Prefix.IsSingleIP() }

func (k RouteKey) String() string { return fmt.Sprintf("%d %s", k.VNI, k.Prefix) }

// RouteKind is where a route leads.
type RouteKind uint8

// The kinds of route.
const (
	// RouteLocal leads into OVN through Gateway.
	RouteLocal RouteKind = iota + 1
	// RouteRemote leads to other nodes over VXLAN, through NextHops.
	RouteRemote
	// RouteBlock drops: an address that is inside an exposed subnet and is
	// itself not to be reached (opted out, or behind NAT).
	RouteBlock
)

func (k RouteKind) String() string {
	switch k {
	case RouteLocal:
		return "local"
	case RouteRemote:
		return "remote"
	case RouteBlock:
		return "block"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// MarshalText names the kind.
func (k RouteKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Route says where packets of a VRF for a destination go, and, for local ones,
// which sources are accepted from OVN: the gateway of the longest match for the
// source has to be the gateway that the packet came from.
type Route struct {
	Key  RouteKey
	Kind RouteKind
	// Gateway is set for RouteLocal.
	Gateway GatewayKey
	// VIP: the address of a RouteLocal has VIPs (table VIPs), which packets from the
	// fabric are looked for in. On the kernel path OVN balances them.
	VIP bool
	// NextHops is set for RouteRemote.
	NextHops NextHopSet
}

// BackendRoute leads packets that are balanced to a backend behind a gateway port where no
// route of the VRF does: its network is not exposed. From its address only answers of VIPs are
// accepted, and nothing else finds it.
type BackendRoute struct {
	Key     RouteKey // a host
	Gateway GatewayKey
}

// NextHop is one next hop of a remote destination (RFC 9136 section 4.4.1).
type NextHop struct {
	// VTEP is the outer destination: the BGP next hop.
	VTEP netip.Addr `json:"vtep"`
	// VNI is the label of the peer's route, not the VRF's own.
	VNI VNI `json:"vni"`
	// RouterMAC is the inner destination MAC, from the peer's router MAC
	// extended community (RFC 9135 section 8.1).
	RouterMAC MAC `json:"routerMAC"`
}

func (h NextHop) String() string { return fmt.Sprintf("%s vni %d mac %s", h.VTEP, h.VNI, h.RouterMAC) }

func (h NextHop) compare(o NextHop) int {
	return cmp.Or(h.VTEP.Compare(o.VTEP), cmp.Compare(h.VNI, o.VNI), cmp.Compare(string(h.RouterMAC[:]), string(o.RouterMAC[:])))
}

// MaxNextHops is the most next hops of one route; those with the highest VTEP addresses are
// left out.
const MaxNextHops = 32

const nextHopLen = 1 + 16 + 4 + 6

// NextHopSet is a sorted set of next hops, comparable as a value. It is opaque:
// make it with NewNextHopSet, read it with All.
type NextHopSet string

// NewNextHopSet sorts, deduplicates and keeps the first MaxNextHops.
func NewNextHopSet(hops ...NextHop) NextHopSet {
	hops = slices.Clone(hops)
	slices.SortFunc(hops, NextHop.compare)
	hops = slices.Compact(hops)
	hops = hops[:min(len(hops), MaxNextHops)]
	b := make([]byte, 0, len(hops)*nextHopLen)
	for _, h := range hops {
		family := byte(6)
		if h.VTEP.Is4() {
			family = 4
		}
		a := h.VTEP.As16()
		b = append(b, family)
		b = append(b, a[:]...)
		b = binary.BigEndian.AppendUint32(b, uint32(h.VNI))
		b = append(b, h.RouterMAC[:]...)
	}
	return NextHopSet(b)
}

// Len is the number of next hops.
func (s NextHopSet) Len() int { return len(s) / nextHopLen }

// All lists the next hops in order.
func (s NextHopSet) All() []NextHop {
	out := make([]NextHop, 0, s.Len())
	for ; len(s) >= nextHopLen; s = s[nextHopLen:] {
		b := []byte(s[:nextHopLen])
		a := netip.AddrFrom16([16]byte(b[1:17]))
		if b[0] == 4 {
			a = a.Unmap()
		}
		out = append(out, NextHop{VTEP: a, VNI: VNI(binary.BigEndian.Uint32(b[17:21])), RouterMAC: MAC(b[21:27])})
	}
	return out
}

func (s NextHopSet) String() string {
	var words []string
	for _, h := range s.All() {
		words = append(words, h.String())
	}
	return strings.Join(words, ", ")
}

// MarshalJSON writes a list of next hops.
func (s NextHopSet) MarshalJSON() ([]byte, error) { return json.Marshal(s.All()) }

// Announcement is a Type-5 route that this node originates, if and while its
// VRF, gateway, steering and route are programmed.
type Announcement struct {
	Key     RouteKey
	Gateway GatewayKey
	// VIPs: nothing but VIPs has the address. One of them has to be served, by eBPF or by OVN.
	VIPs bool
}
