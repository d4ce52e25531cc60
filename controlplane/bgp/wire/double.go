package wire

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"
)

// Own is how this node is known in the routes that it announces.
type Own struct {
	RouterID  netip.Addr
	VTEPs     []netip.Addr
	RouterMAC [6]byte
}

// Double is another node with this node's router ID or VTEP, as its routes show it. Route
// reflectors pass on what the server then takes for this node's own routes, and drops.
type Double struct {
	RouterID  netip.Addr // invalid: its routes do not tell
	VTEP      netip.Addr
	RouterMAC [6]byte
}

// of is the double whose route has these, if it is one. Own routes that come back are none,
// nor are those that a border gateway announces anew with itself as next hop: it may keep the
// route distinguisher, so at another VTEP only the ORIGINATOR_ID of a reflector counts.
func (o Own) of(d Double, reflected bool) (Double, bool) {
	if slices.Contains(o.VTEPs, d.VTEP) {
		return d, d.RouterID != o.RouterID || d.RouterMAC != o.RouterMAC
	}
	return d, reflected && d.RouterID == o.RouterID
}

// appearsIn tells quickly that a message may hold a route of a double: it has the router ID
// or a VTEP somewhere.
func (o Own) appearsIn(msg []byte) bool {
	return bytes.Contains(msg, o.RouterID.AsSlice()) ||
		slices.ContainsFunc(o.VTEPs, func(a netip.Addr) bool { return bytes.Contains(msg, a.AsSlice()) })
}

// mostDoubled bounds the routes of doubles that are kept of one session.
const mostDoubled = 4096

// doubles follows the routes of doubles in one session.
type doubles struct {
	own    Own
	routes map[string]Double // by what identifies a route of Type 5
	counts map[Double]int    // of their routes
}

func newDoubles(own Own) doubles {
	return doubles{own: own, routes: map[string]Double{}, counts: map[Double]int{}}
}

// take follows a message of the neighbour. It returns the doubles, when these have changed.
func (d *doubles) take(a Agreement, msg []byte) (all []Double, changed bool) {
	if msg[18] != typeUpdate || !d.own.RouterID.IsValid() || len(d.routes) == 0 && !d.own.appearsIn(msg) {
		return nil, false
	}
	u, err := parseUpdate(msg[headerLen:])
	if err != nil {
		return nil, false
	}
	for _, t := range u.attrs {
		if t.kind != attrReach && t.kind != attrUnreach {
			continue
		}
		r, _ := a.routes(t)
		if r.family != evpn {
			continue
		}
		for rest := r.nlri; len(rest) > 0; rest = rest[2+int(rest[1]):] {
			changed = d.route(u, r, rest[:2+int(rest[1])]) || changed
		}
	}
	if !changed {
		return nil, false
	}
	return d.list(), true
}

// route takes one route of Type 5 (RFC 9136 section 3.1). It tells whether a double has its
// first route by it, or has lost its last one.
func (d *doubles) route(u update, r routes, nlri []byte) (changed bool) {
	end := 2 + 8 + 10 + 4 + 1 + 4
	if len(nlri) > 2+34 {
		end += 12
	}
	key := string(nlri[2:10]) + string(nlri[20:end]) // route distinguisher, tag, prefix
	before, had := d.routes[key]
	var now Double
	has := false
	if r.announced && (had || len(d.routes) < mostDoubled) {
		now, has = d.own.of(u.node(r, nlri))
	}
	if had == has && (!has || before == now) {
		return false
	}
	if had {
		delete(d.routes, key)
		if d.counts[before]--; d.counts[before] == 0 {
			delete(d.counts, before)
			changed = true
		}
	}
	if has {
		d.routes[key] = now
		d.counts[now]++
		changed = changed || d.counts[now] == 1
	}
	return changed
}

// node is the node that has made a route: by its next hop, its ORIGINATOR_ID (RFC 4456
// section 8) or route distinguisher, and its router MAC (RFC 9135). reflected: there is an
// ORIGINATOR_ID.
func (u update) node(r routes, nlri []byte) (n Double, reflected bool) {
	n.VTEP = r.hop.addr
	if binary.BigEndian.Uint16(nlri[2:]) == 1 {
		n.RouterID = netip.AddrFrom4([4]byte(nlri[4:8]))
	}
	for _, t := range u.attrs {
		switch {
		case t.kind == attrOriginator && len(t.value) == 4:
			n.RouterID, reflected = netip.AddrFrom4([4]byte(t.value)), true
		case t.kind == attrCommunities && len(t.value)%8 == 0:
			for c := range slices.Chunk(t.value, 8) {
				if binary.BigEndian.Uint16(c) == communityRouterMAC {
					n.RouterMAC = [6]byte(c[2:])
				}
			}
		}
	}
	return n, reflected
}

func (d *doubles) list() []Double {
	return slices.SortedFunc(maps.Keys(d.counts), func(a, b Double) int {
		return cmp.Or(a.VTEP.Compare(b.VTEP), a.RouterID.Compare(b.RouterID), bytes.Compare(a.RouterMAC[:], b.RouterMAC[:]))
	})
}
