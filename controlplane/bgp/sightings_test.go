package bgp

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestSightings(t *testing.T) {
	own := netip.MustParseAddr("192.0.2.9")
	r := newRIB(notOwn, time.Second, 0)
	sent := func(prefix, vtep string, routerID string, withdrawn bool, targets ...string) {
		p := testPath(prefix, vtep, targets...)
		p.key.rd, p.withdrawn = wireRD(netip.MustParseAddr(routerID), 7), withdrawn
		r.apply(p, epoch)
	}
	sent("10.1.0.0/16", "192.0.2.2", "192.0.2.2", false, "1:1001")
	sent("10.2.0.0/16", "192.0.2.1", "192.0.2.1", false, "1:1001")
	sent("10.3.0.0/16", "192.0.2.1", "192.0.2.1", false, "1:9", "1:1001")
	sent("10.4.0.0/16", "192.0.2.3", "192.0.2.1", false, "1:1001")
	sent("fd00::/64", "192.0.2.4", own.String(), false, "1:1001")
	sent("10.5.0.0/16", "127.0.0.1", "192.0.2.2", false, "1:66") // rejected
	label := testPath("10.1.0.0/16", "192.0.2.2").hop.VNI
	got := sightings(all(r), own, own)
	want := Sightings{
		Uses: []Sighting{
			{label, targets("1:1001"), netip.MustParseAddr("192.0.2.1")},
			{label, targets("1:9", "1:1001"), netip.MustParseAddr("192.0.2.1")},
		},
		RDs: map[string][]netip.Addr{
			"192.0.2.1:7": {netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.3")},
			"192.0.2.9:7": {netip.MustParseAddr("192.0.2.4"), own}, // a border gateway keeps it
		},
		VTEPs: map[netip.Addr][]Identity{},
	}
	if diff := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b Sighting) bool { return a.Targets < b.Targets }), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Error(diff)
	}
	before := r.applied
	sent("10.4.0.0/16", "192.0.2.3", "192.0.2.1", true)
	sent("fd00::/64", "192.0.2.4", own.String(), true)
	if s := sightings(all(r), own, own); len(s.RDs) != 0 || r.applied == before {
		t.Errorf("after the withdrawal: %+v", s.RDs)
	}
}

func all(r *rib) (out []*path) {
	for _, p := range r.paths {
		out = append(out, p)
	}
	return out
}
