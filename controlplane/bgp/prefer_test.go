package bgp

import (
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// The node that a gateway port has come to is preferred by all at once, as long as
// it announces, and does not outbid nodes that have the prefix for good.
func TestPreference(t *testing.T) {
	k, now := key(1001, "10.0.0.0/24"), time.Now()
	r := newRIB(func(netip.Addr) bool { return false }, 0, 0)
	vrf := intent.VRFPolicy{VNI: 1001, Index: 1, Export: targets("1:1"), Import: targets("1:1")}
	r.setPolicies(policies(vrf))
	sibling, stranger := netip.MustParseAddr("192.0.2.8"), netip.MustParseAddr("192.0.2.9")
	r.siblings[sibling] = struct{}{}
	seen := func(vtep netip.Addr, pref uint32, withdrawn bool) {
		p := &path{key: pathKey{neighbor: vtep, addr: k.Prefix.Addr(), bits: 24}, prefix: k.Prefix, withdrawn: withdrawn, hasMAC: true,
			hop: intent.NextHop{VTEP: vtep, VNI: 1001, RouterMAC: intent.MAC{2}}, targets: targets("1:1").All(), rank: rank{localPref: pref}}
		r.apply(p, now)
	}
	o := newOutbox(testConfig().withDefaults())
	o.highest = r.highest
	view := peerView{}
	o.setPolicies(policies(vrf))
	announce := func(what string, want uint32) {
		t.Helper()
		o.unwant(k)
		view.run(o, []intent.RouteKey{k})
		if err := o.want(Announcement{Key: k}); err != nil {
			t.Fatal(err)
		}
		view.run(o, []intent.RouteKey{k})
		if got, _ := o.last(k); got.localPref != want {
			t.Errorf("%s: LOCAL_PREF %d, want %d", what, got.localPref, want)
		}
	}
	announce("alone", 100)
	seen(stranger, 500, false)
	announce("beside one that may have it for good", 100)
	seen(sibling, 7, false)
	announce("after a low one", 100)
	seen(sibling, 100, false)
	if list := o.outranked(); len(list) != 1 {
		t.Errorf("%d routes are outranked", len(list))
	}
	o.yielding[k] = struct{}{} // its port has gone to the sibling
	if list := o.outranked(); len(list) != 0 {
		t.Errorf("%d routes that yield would outbid the port's new node", len(list))
	}
	if got, _ := o.route(k); got.prepend != 0 {
		t.Error("a node of the same AS would take the longer path for a loop")
	}
	announce("after one that lingers", 101)
	if list := o.outranked(); len(list) != 0 {
		t.Errorf("%d routes are outranked", len(list))
	}
	seen(sibling, 200, false)
	view.run(o, []intent.RouteKey{k})
	if got, _ := o.last(k); got.localPref != 101 {
		t.Errorf("an announced route changed its LOCAL_PREF to %d", got.localPref)
	}
	seen(sibling, math.MaxUint32, false)
	announce("at the end of the numbers", math.MaxUint32)
	seen(sibling, 0, true)
	announce("when it is gone", 100)
}

// A node that has lost the port has a longer path for neighbours of other ASes, and
// its own again when the port is back.
func TestYieldOnTheWire(t *testing.T) {
	leaf := startFRR(t, 65001, v4, neighbor("127.0.0.11", 64512))
	a := startSpeaker(t, nodeConfig(1, leaf.neighborFor("127.0.0.1", 65001, "127.0.0.11")))
	k4, k6 := key(1001, "10.10.0.0/24"), key(1001, "2001:db8:10::/64")
	a.do(childCommand{Policies: []childPolicy{red}, Upserts: []intent.RouteKey{k4, k6}})
	paths := func(want string) func() bool {
		return func() bool {
			routes := leaf.routes()
			for _, r := range routes {
				if r.Aspath.String != want {
					return false
				}
			}
			return len(routes) == 2
		}
	}
	eventually(t, "announced", paths("64512"))
	a.do(childCommand{Yield: []intent.RouteKey{k4, k6}})
	eventually(t, "the port has gone", paths("64512 64512 64512"))
	a.do(childCommand{Hold: []intent.RouteKey{k4, k6}})
	eventually(t, "the port is back", paths("64512"))
}
