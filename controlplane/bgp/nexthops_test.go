package bgp

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func lostVTEPs(who string) set[netip.Addr] {
	out := set[netip.Addr]{}
	for _, w := range who {
		out[netip.MustParseAddr(fmt.Sprintf("192.0.2.%d", w))] = struct{}{}
	}
	return out
}

// lose makes the VTEPs of these nodes the ones without a route.
func (s *scene) lose(who string) {
	s.t.Helper()
	s.rib.setLost(lostVTEPs(who))
	s.settle(epoch)
}

// row is which nodes a row leads to.
func (s *scene) row(prefix string) (who string) {
	for _, h := range s.rib.routes[1001][netip.MustParsePrefix(prefix)].All() {
		b := h.VTEP.As4()
		who += string(rune(b[3]))
	}
	return who
}

// A VTEP without a route takes no share of a row, a path that was not the best takes its
// place, and all is as before when the route is back (RFC 4271 section 9.1.2.1).
func TestUnreachableNextHop(t *testing.T) {
	s := newScene(t, 30*time.Second)
	s.do(0, "+A 10.1.0.0/16", "+B 10.1.0.0/16", "+A 10.2.0.0/16", "+B 10.3.0.0/16", "+C 10.3.0.0/16")
	worse := scenePath("C", "10.1.0.0/16", false)
	worse.rank.localPref = 50
	s.rib.apply(worse, epoch)
	s.settle(epoch)
	rows := func(want string) {
		t.Helper()
		var got []string
		for _, prefix := range []string{"10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16"} {
			got = append(got, s.row(prefix))
		}
		if strings.Join(got, " ") != want {
			t.Fatalf("rows lead to %q, want %q", strings.Join(got, " "), want)
		}
	}
	rows("AB A BC")
	s.lose("A")
	rows("B  BC")
	s.lose("AB")
	rows("C  C")
	s.lose("ABC")
	rows("  ")
	s.do(0, "+B 10.2.0.0/16") // a path that comes meanwhile
	rows("  ")
	s.lose("C")
	rows("AB AB B")
	s.lose("")
	rows("AB AB BC")
	if n := s.rib.counts(netip.MustParseAddr("198.51.100.1")).total[ReasonUnreachable]; n == 0 {
		t.Errorf("counted: %v", s.rib.neighbors)
	}
}

// Of VTEPs without a route those are named that a VRF here imports routes of, whether they are
// in a row or not.
func TestImportedVTEPs(t *testing.T) {
	s := newScene(t, 30*time.Second)
	s.do(0, "+A 10.1.0.0/16", "+B/1009 10.2.0.0/16", "+C fd00:3::/64", "+D/1009 fd00:4::/64")
	s.lose("ABD")
	asked := map[netip.Addr]string{}
	for a := range s.rib.lost {
		asked[a] = "blackhole"
	}
	named := func(want string) {
		t.Helper()
		got := s.rib.imported(asked)
		for a := range lostVTEPs(want) {
			if got[a] != "blackhole" {
				t.Errorf("%s is not among %v", a, got)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%v, want those of %q", got, want)
		}
	}
	named("A")
	s.rib.setPolicies(policies(intent.VRFPolicy{VNI: 1009, Index: 1, AutoImport: true}))
	s.settle(epoch)
	named("BD")
}

// A row that is kept for a lost node goes when its VTEP has no route, and is there again when
// the route is back in time.
func TestUnreachableStaleRow(t *testing.T) {
	s := newScene(t, 30*time.Second)
	s.do(0, "+A 10.1.0.0/16", "+A 10.2.0.0/16")
	s.do(time.Second, "-A 10.1.0.0/16", "-A 10.2.0.0/16")
	if s.row("10.1.0.0/16") != "A" {
		t.Fatal("not kept")
	}
	s.rib.setLost(lostVTEPs("A"))
	s.settle(epoch.Add(2 * time.Second))
	if s.row("10.1.0.0/16") != "" {
		t.Error("kept without a route")
	}
	s.rib.setLost(lostVTEPs(""))
	s.settle(epoch.Add(3 * time.Second))
	if s.row("10.1.0.0/16") != "A" || s.row("10.2.0.0/16") != "A" {
		t.Error("not there again")
	}
	s.settle(epoch.Add(40 * time.Second))
	if s.row("10.1.0.0/16") != "" {
		t.Error("kept for good")
	}
}

// explain names the VTEPs that are not used, and counts those above the most.
func TestExplainUnused(t *testing.T) {
	r := newRIB(notOwn, time.Second, 0)
	r.setPolicies(policies(intent.VRFPolicy{VNI: 1001, Index: 1, AutoImport: true}))
	for i := range 40 {
		for _, prefix := range []string{"10.1.0.0/16", "2001:db8:1::/48"} {
			r.apply(testPath(prefix, fmt.Sprintf("192.0.2.%d", i+1), "1:1001"), epoch)
		}
	}
	r.apply(testPath("10.2.0.0/16", "192.0.2.40", "1:1001"), epoch)
	detail := func(dst string) status.Step {
		r.settle(epoch)
		a := netip.MustParseAddr(dst)
		v := view{q: status.Query{VRF: 1001, Dst: a}, insync: true, policy: r.policies[1001], known: true, dst: r.longest(1001, a)}
		importers := r.importersNow()
		for _, p := range r.received(&a) {
			if i := p.info(importers); len(i.VRFs) == 0 {
				v.others = append(v.others, i)
			}
		}
		return v.destinationStep()
	}
	for _, dst := range []string{"10.1.2.3", "2001:db8:1::1"} {
		r.setLost(nil)
		s := detail(dst)
		if !s.Found || !strings.Contains(s.Detail, "; 8 more next hops are left out: a route uses at most 32, those with the lowest VTEP addresses") || strings.Contains(s.Detail, "192.0.2.33") {
			t.Errorf("%s: %+v", dst, s)
		}
		r.setLost(set[netip.Addr]{netip.MustParseAddr("192.0.2.1"): {}, netip.MustParseAddr("192.0.2.40"): {}})
		s = detail(dst)
		if !strings.Contains(s.Detail, "; 6 more next hops") || !strings.Contains(s.Detail, "; not used, since this node has no route to the VTEP: 192.0.2.1, 192.0.2.40") || !strings.Contains(s.Detail, "192.0.2.33") {
			t.Errorf("%s: %+v", dst, s)
		}
	}
	s := detail("10.2.0.1")
	if s.Found || !strings.Contains(s.Detail, "next hop 192.0.2.40, label 1001) is rejected: next-hop-unreachable") || !strings.Contains(s.Hint, "ip route get") {
		t.Errorf("%+v", s)
	}
}
