package wire

import (
	"net/netip"
	"slices"
	"testing"
)

// Other nodes with this node's router ID or VTEP are told of with all that they are known by,
// of both families, until their last route is withdrawn; own routes that come back are none.
func TestDoubles(t *testing.T) {
	own := Own{
		RouterID: netip.MustParseAddr("192.0.2.1"), RouterMAC: [6]byte{2, 0, 0, 0, 0, 1},
		VTEPs: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")},
	}
	vtep := func(a string) []byte { return netip.MustParseAddr(a).AsSlice() }
	id := func(a string) netip.Addr { return netip.MustParseAddr(a) }
	// of makes a route by a node with a router ID; 4 or 6 is the family of its prefix.
	of := func(family int, routerID string, number byte) []byte {
		n := five4(number)
		if family == 6 {
			n = five6(number)
		}
		copy(n[2:], append([]byte{0, 1}, vtep(routerID)...))
		return n
	}
	mac := func(last byte) []byte { return attr(0xc0, 16, 0x06, 0x03, 2, 0, 0, 0, 0, last) }
	originator := func(a string) []byte { return attr(0x80, 9, vtep(a)...) }
	type step struct {
		what string
		body []byte
		want []Double
	}
	clone4 := Double{id("192.0.2.9"), own.VTEPs[0], [6]byte{2, 0, 0, 0, 0, 9}}
	clone6 := Double{id("192.0.2.9"), own.VTEPs[1], [6]byte{2, 0, 0, 0, 0, 9}}
	same := Double{own.RouterID, id("192.0.2.7"), [6]byte{2, 0, 0, 0, 0, 7}}
	mine, unset := Double{own.RouterID, own.VTEPs[0], [6]byte{2, 0, 0, 0, 0, 8}}, []Double{}
	for _, family := range []int{4, 6} {
		for _, s := range [][]step{
			{
				{"another node", body(nil, nil, origin, reachOf(evpn, vtep("192.0.2.9"), of(family, "192.0.2.9", 1)), mac(9)), unset},
				{"an own route comes back", body(nil, nil, origin, reachOf(evpn, vtep("192.0.2.1"), of(family, "192.0.2.1", 1)), mac(1)), unset},
				{"a clone's first route", body(nil, nil, origin, reachOf(evpn, vtep("192.0.2.1"), of(family, "192.0.2.9", 1), of(family, "192.0.2.9", 2)), mac(9)), []Double{clone4}},
				{"its other VTEP", body(nil, nil, origin, reachOf(evpn, vtep("2001:db8::1"), of(family, "192.0.2.9", 3)), mac(9)), []Double{clone4, clone6}},
				{"one withdrawn", body(nil, nil, unreachOf(evpn, of(family, "192.0.2.9", 1))), []Double{clone4, clone6}},
				{"the next one", body(nil, nil, unreachOf(evpn, of(family, "192.0.2.9", 2))), []Double{clone6}},
				{"one gets another next hop", body(nil, nil, origin, reachOf(evpn, vtep("192.0.2.9"), of(family, "192.0.2.9", 3)), mac(9)), unset},
			},
			{
				{"the router ID in the ORIGINATOR_ID", body(nil, nil, origin, originator("192.0.2.1"), reachOf(evpn, vtep("192.0.2.7"), of(family, "192.0.2.2", 1)), mac(7)), []Double{same}},
				{"in the route distinguisher, too", body(nil, nil, origin, originator("192.0.2.1"), reachOf(evpn, vtep("192.0.2.7"), of(family, "192.0.2.1", 1)), mac(7)), []Double{same}},
				{"one withdrawn", body(nil, nil, unreachOf(evpn, of(family, "192.0.2.2", 1))), []Double{same}},
				{"and the other one", body(nil, nil, unreachOf(evpn, of(family, "192.0.2.1", 1))), unset},
			},
			{
				{"a border gateway announces an own route anew", body(nil, nil, origin, reachOf(evpn, vtep("192.0.2.7"), of(family, "192.0.2.1", 1)), mac(7)), unset},
				{"of its other address", body(nil, nil, origin, reachOf(evpn, vtep("2001:db8::7"), of(family, "192.0.2.1", 2)), mac(7)), unset},
				{"behind a reflector", body(nil, nil, origin, originator("192.0.2.7"), reachOf(evpn, vtep("192.0.2.7"), of(family, "192.0.2.1", 1)), mac(7)), unset},
				{"a double announces the same", body(nil, nil, origin, originator("192.0.2.1"), reachOf(evpn, vtep("192.0.2.7"), of(family, "192.0.2.1", 1)), mac(7)), []Double{same}},
				{"and the gateway once more", body(nil, nil, origin, reachOf(evpn, vtep("192.0.2.7"), of(family, "192.0.2.1", 1)), mac(7)), unset},
			},
			{{"all but the router MAC", body(nil, nil, origin, reachOf(evpn, vtep("192.0.2.1"), of(family, "192.0.2.1", 1)), mac(8)), []Double{mine}}},
			{{"cut off", body(nil, nil, origin, reachOf(evpn, vtep("192.0.2.1"), of(family, "192.0.2.9", 1)[:20])), unset}},
		} {
			d := newDoubles(own)
			last := unset
			for _, step := range s {
				if got, changed := d.take(all, messageOf(typeUpdate, step.body)); changed {
					last = got
				}
				if !slices.Equal(last, step.want) {
					t.Errorf("IPv%d, %s: %v, want %v", family, step.what, last, step.want)
				}
			}
		}
	}
}

// What changes no double is not told: further routes of one, the same again, other routes, and
// withdrawals but the last.
func TestDoublesAreToldOnce(t *testing.T) {
	own := Own{RouterID: netip.MustParseAddr("192.0.2.1"), VTEPs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}
	clone := func(numbers ...byte) []byte {
		var list [][]byte
		for _, n := range numbers {
			list = append(list, five4(n), five6(n))
		}
		return body(nil, nil, origin, reachOf(evpn, own.VTEPs[0].AsSlice(), list...))
	}
	d := newDoubles(own)
	for _, step := range []struct {
		what    string
		body    []byte
		changed bool
		count   int
	}{
		{"the first", clone(1), true, 1},
		{"the same", clone(1), false, 1},
		{"more", clone(2, 3), false, 1},
		{"others", body(nil, nil, origin, reachOf(evpn, hop4, five4(9), five6(9))), false, 1},
		{"some are withdrawn", body(nil, nil, unreachOf(evpn, five4(1), five6(1), five4(2), five6(3))), false, 1},
		{"the last are", body(nil, nil, unreachOf(evpn, five6(2), five4(3))), true, 0},
	} {
		doubled, changed := d.take(all, messageOf(typeUpdate, step.body))
		if changed != step.changed || changed && len(doubled) != step.count || len(d.counts) != step.count {
			t.Errorf("%s: told %v, %v; counts %v", step.what, changed, doubled, d.counts)
		}
	}
	if len(d.routes) != 0 {
		t.Errorf("%d routes are left", len(d.routes))
	}
}
