package intent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// UnderlayRoute is a route of the fabric that the node itself uses: a row of the
// kernel's main table. Its key is the prefix, masked as in RouteKey.
//
// The tables of the underlay, UnderlayRoutes (netip.Prefix → UnderlayRoute) and
// UnderlayAnnouncements (netip.Prefix → UnderlayAnnouncement), are beside those of
// the tenants: they depend on no tenant, and no tenant's row on them.
type UnderlayRoute struct {
	Prefix netip.Prefix
	// Metric is the kernel's. A route of others with the same prefix and metric is
	// an error of the row.
	Metric uint32
	// Source is the preferred source address, of the prefix's family. Invalid: the
	// kernel's choice.
	Source netip.Addr
	// Hops is not empty.
	Hops UnderlayHops
}

// UnderlayHop is one next hop of a route of the underlay.
type UnderlayHop struct {
	// Via is the router's address; an IPv4 route may have an IPv6 one (RFC 8950).
	Via netip.Addr `json:"via"`
	// Device is the name of the router's link.
	Device string `json:"device"`
}

func (h UnderlayHop) String() string { return fmt.Sprintf("%s dev %s", h.Via, h.Device) }

// UnderlayHops is a sorted set of hops, comparable as a value. It is opaque: make
// it with NewUnderlayHops, read it with All.
type UnderlayHops string

// NewUnderlayHops sorts, deduplicates and keeps the first MaxNextHops.
func NewUnderlayHops(hops ...UnderlayHop) UnderlayHops {
	hops = slices.Clone(hops)
	for i := range hops {
		hops[i].Via = hops[i].Via.Unmap().WithZone("")
	}
	slices.SortFunc(hops, func(a, b UnderlayHop) int {
		return cmp.Or(strings.Compare(a.Device, b.Device), a.Via.Compare(b.Via))
	})
	hops = slices.Compact(hops)
	words := make([]string, 0, len(hops))
	for _, h := range hops[:min(len(hops), MaxNextHops)] {
		words = append(words, h.Via.String()+"%"+h.Device)
	}
	// No address and no name of a device has a space.
	return UnderlayHops(strings.Join(words, " "))
}

// All lists the hops in order.
func (s UnderlayHops) All() []UnderlayHop {
	var out []UnderlayHop
	for word := range strings.FieldsSeq(string(s)) {
		via, device, _ := strings.Cut(word, "%")
		a, err := netip.ParseAddr(via)
		if err == nil {
			out = append(out, UnderlayHop{Via: a, Device: device})
		}
	}
	return out
}

func (s UnderlayHops) String() string {
	var words []string
	for _, h := range s.All() {
		words = append(words, h.String())
	}
	return strings.Join(words, ", ")
}

// MarshalJSON writes a list of hops.
func (s UnderlayHops) MarshalJSON() ([]byte, error) { return json.Marshal(s.All()) }

// UnmarshalJSON reads what MarshalJSON writes.
func (s *UnderlayHops) UnmarshalJSON(b []byte) error {
	var hops []UnderlayHop
	if err := json.Unmarshal(b, &hops); err != nil {
		return fmt.Errorf("next hops of the underlay: %w", err)
	}
	*s = NewUnderlayHops(hops...)
	return nil
}

// UnderlayAnnouncement is a prefix that this node announces as plain unicast, with
// itself as next hop. Its key is the prefix.
type UnderlayAnnouncement struct {
	Prefix netip.Prefix
	// VTEP: the prefix is the tunnel endpoint's, and announced while the fabric
	// device takes packets.
	VTEP bool
}

// UnderlayDevice is a device of the underlay where packets for addresses of the
// default VRF come in. Its key is its name.
type UnderlayDevice struct {
	Name string
}
