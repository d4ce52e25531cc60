package bgp

import (
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// A route to a subnet, or into it, is told of; one around it, beside it or of another VRF is not.
func TestOverlaps(t *testing.T) {
	for name, row := range map[string]struct {
		announced string
		subnet    string
		want      bool
	}{
		"the subnet":               {"10.10.0.0/24", "10.10.0.0/24", true},
		"a host":                   {"10.10.0.7/32", "10.10.0.0/24", true},
		"around it":                {"10.0.0.0/8", "10.10.0.0/24", false},
		"the default route":        {"0.0.0.0/0", "10.10.0.0/24", false},
		"beside it":                {"10.10.1.0/24", "10.10.0.0/24", false},
		"the subnet, IPv6":         {"2001:db8:10::/64", "2001:db8:10::/64", true},
		"a host, IPv6":             {"2001:db8:10::7/128", "2001:db8:10::/64", true},
		"around it, IPv6":          {"2001:db8::/32", "2001:db8:10::/64", false},
		"beside it, IPv6":          {"2001:db8:11::/64", "2001:db8:10::/64", false},
		"the bytes of an IPv6 one": {"32.1.13.184/32", "2001:db8::/32", false},
		"the bytes of an IPv4 one": {"2001:db8::/32", "32.1.13.184/32", false},
	} {
		r := newRIB(notOwn, time.Second, 0)
		r.setPolicies(map[intent.VNI]intent.VRFPolicy{1001: {VNI: 1001, AutoImport: true}, 1002: {VNI: 1002, AutoImport: true}})
		r.apply(testPath(row.announced, "192.0.2.2", "64512:1001"), epoch)
		r.settle(epoch)
		if len(r.routes[1001]) != 1 {
			t.Fatalf("%s: imported %v", name, r.routes)
		}
		subnets := []netip.Prefix{netip.MustParsePrefix("198.51.100.0/28"), netip.MustParsePrefix(row.subnet)}
		if got := r.enters(1001, subnets); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
		if r.enters(1002, subnets) {
			t.Errorf("%s: another VRF's", name)
		}
	}
}

// Progress is another one whenever Overlaps is: also when a VRF gets route targets that import a
// route of before, and when the VTEP of a route is lost or back.
func TestOverlapsChangeWithProgress(t *testing.T) {
	for _, route := range []string{"10.10.0.7/32", "2001:db8:10::7/128"} {
		s, err := New(nodeConfig(1), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		subnets := map[intent.VNI][]netip.Prefix{1001: {netip.MustParsePrefix("10.10.0.0/24"), netip.MustParsePrefix("2001:db8:10::/64")}}
		policies := map[intent.VNI]intent.VRFPolicy{1001: {VNI: 1001, Index: 7, AutoImport: true}}
		received := func() {
			s.in.mu.Lock()
			defer s.in.mu.Unlock()
			s.in.rib.apply(testPath(route, "192.0.2.2", "64512:1001"), epoch)
			s.publishLocked()
		}
		vtep := map[netip.Addr]struct{}{netip.MustParseAddr("192.0.2.2"): {}}
		for _, step := range []struct {
			what string
			do   func()
			want int
		}{
			{"a route that nobody imports", received, 0},
			{"route targets", func() { s.SetPolicies(policies) }, 1},
			{"the VTEP is lost", func() { s.SetUnreachable(vtep) }, 0},
			{"and back", func() { s.SetUnreachable(nil) }, 1},
			{"no route targets", func() { s.SetPolicies(nil) }, 0},
			{"route targets again", func() { s.SetPolicies(policies) }, 1},
		} {
			before, had := s.Progress(), len(s.Overlaps(subnets))
			step.do()
			got := len(s.Overlaps(subnets))
			if got != step.want || got != had && s.Progress() == before {
				t.Errorf("%s, %s: %d overlaps, progress changed %t", route, step.what, got, s.Progress() != before)
			}
		}
	}
}
