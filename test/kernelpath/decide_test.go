//go:build guest

package kernelpath

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// TestDecide asks for the routes of all rows: the kernel goes by them, and by others
// where somebody has made it so.
func TestDecide(t *testing.T) {
	s := newSite(t, false, false)
	r := s.rows()
	r.local("0.0.0.0/0", "::/0")
	here := intent.NextHop{VTEP: s.peVTEP(), VNI: vni, RouterMAC: mac(peMAC)}
	r.remote([]intent.NextHop{here, {VTEP: addr("192.0.2.3"), VNI: 77, RouterMAC: mac("02:00:00:00:00:03")}}, "10.50.0.0/24", "fd50::/64")
	for _, p := range []string{"10.60.0.1/32", "fd60::1/128"} {
		k := intent.NewRouteKey(vni, netip.MustParsePrefix(p))
		r.routes[k] = intent.Route{Key: k, Kind: intent.RouteBlock}
	}
	s.mustApply(r)
	for _, tt := range []struct {
		do, undo string
		differ   []string
		says     string
	}{
		{":", ":", nil, ""},
		{"ip route del 10.9.0.0/24 table 1001; ip -6 route del fd09::/64 table 1001", ":", []string{"10.9.0.0/24", "fd09::/64"}, "go by the route to "},
		{"ip neigh del 172.24.4.1 dev sv1001-0", ":", []string{"0.0.0.0/0", "10.0.0.0/24", "172.24.4.1/32"}, "of protocol 115"},
		{"ip route add 10.0.0.0/25 dev u table 1001 proto static", "ip route del 10.0.0.0/25 dev u table 1001", []string{"10.0.0.0/24"}, "10.0.0.0/25 of protocol 4 in table 1001"},
		{"ip rule add to 10.50.0.0/16 lookup main pref 500; ip route add 10.50.0.0/16 via 192.0.2.2", "ip rule del pref 500; ip route del 10.50.0.0/16", []string{"10.50.0.0/24"}, "10.50.0.0/16 of protocol 3 in table 254"},
		{"ip addr add 10.60.0.1/32 dev lo", "ip addr del 10.60.0.1/32 dev lo", []string{"10.60.0.1/32"}, "in table 255"},
	} {
		run(t, "node", tt.do)
		got, said := s.undecided(r)
		if !slices.Equal(got, tt.differ) {
			t.Errorf("after %s these differ: %v, want %v", tt.do, got, tt.differ)
		}
		for _, text := range said {
			if !strings.Contains(text, tt.says) {
				t.Errorf("after %s the kernel would %s, want %q", tt.do, text, tt.says)
			}
		}
		run(t, "node", tt.undo)
		s.mustApply(r)
	}
}

// undecided are the destinations that the kernel does not decide on as is wanted.
func (s *site) undecided(r rows) (differ, said []string) {
	s.t.Helper()
	var keys []intent.RouteKey
	for k := range r.routes {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b intent.RouteKey) int { return strings.Compare(a.Prefix.String(), b.Prefix.String()) })
	got, err := s.path.Decide(keys)
	if err != nil {
		s.t.Fatal(err)
	}
	for i, k := range keys {
		want := r.routes[k]
		if same := got[i].Route == want || want.Kind == intent.RouteBlock && got[i].Route.Kind == intent.RouteBlock; !same {
			differ, said = append(differ, k.Prefix.String()), append(said, got[i].Text)
		}
	}
	return differ, said
}
