package bgp

import (
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// stopped is a speaker that does not run: the tables are filled by hand.
func stopped(t *testing.T) *GoBGP {
	t.Helper()
	cfg := nodeConfig(9, Neighbor{Address: netip.MustParseAddr("198.51.100.1"), ASN: 64512})
	cfg.VTEP6 = netip.MustParseAddr("2001:db8::9")
	s, err := New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *GoBGP) testSend(keys ...intent.RouteKey) {
	for _, k := range keys {
		_ = s.out.want(Announcement{Key: k})
	}
	for _, st := range s.out.plan(keys) {
		s.out.done(st)
	}
}

func TestExplain(t *testing.T) {
	p1001 := intent.VRFPolicy{VNI: 1001, Index: 7, Export: targets("64512:1001"), Import: targets("64512:5"), AutoImport: true}
	fault := func(prefix, hop string, change func(*path), rts ...string) *path {
		p := testPath(prefix, hop, rts...)
		change(p)
		return p
	}
	type want struct {
		found        bool
		detail, hint string
	}
	none := func(*GoBGP) {}
	source, destination := 2, 3
	for _, tt := range []struct {
		name     string
		src, dst string
		policy   intent.VRFPolicy
		set      func(*GoBGP)
		paths    []*path
		step     int
		want     want
	}{
		{"no such VRF", "10.1.0.5", "10.2.0.5", intent.VRFPolicy{VNI: 7, Index: 1}, none, nil, 0, want{false, "does not have the VRF", "sluicectl vrf list"}},
		{"the VRF's targets", "10.1.0.5", "10.2.0.5", p1001, none, nil, 0, want{true, "imports 64512:5 and the number 1001 of any AS; exports 64512:1001", ""}},
		{"announced", "10.1.0.5", "10.2.0.5", p1001, func(s *GoBGP) { s.testSend(key(1001, "10.0.0.0/8"), key(1001, "10.1.0.0/16"), key(1001, "::/0")) }, nil, source,
			want{false, "10.1.0.0/16 waits for a neighbour", "BGP sessions"}},
		{"announced, IPv6", "2001:db8:1::5", "2001:db8:2::5", p1001, func(s *GoBGP) { s.testSend(key(1001, "2001:db8:1::/64"), key(1001, "10.0.0.0/8")) }, nil, source,
			want{false, "2001:db8:1::/64 waits for a neighbour", "BGP sessions"}},
		{"announced in another VRF", "10.1.0.5", "10.2.0.5", p1001, func(s *GoBGP) { s.testSend(key(7, "10.1.0.0/16")) }, nil, source, want{false, "answers do not reach this node", "exposed"}},
		{"without a route target", "10.1.0.5", "10.2.0.5", intent.VRFPolicy{VNI: 1001, Index: 7}, func(s *GoBGP) { s.testSend(key(1001, "10.1.0.0/16")) }, nil, source,
			want{false, "without a route target", "evpn.vrfs.1001.export"}},
		{"waiting", "10.1.0.5", "10.2.0.5", intent.VRFPolicy{VNI: 7, Index: 1}, func(s *GoBGP) { s.testSend(key(1001, "10.1.0.0/16")) }, nil, source, want{false, "waits for the route targets", "route targets"}},
		{"source elsewhere", "10.2.0.5", "10.1.0.5", p1001, none, []*path{testPath("10.2.0.0/16", "192.0.2.1", "64512:1001")}, source, want{true, "10.2.0.0/16 leads to 192.0.2.1", ""}},
		{"imported, longest match", "10.1.0.5", "10.2.0.5", p1001, none, []*path{testPath("10.0.0.0/8", "192.0.2.1", "64512:1001"), testPath("10.2.0.0/16", "192.0.2.2", "64512:5")}, destination,
			want{true, "10.2.0.0/16 leads to 192.0.2.2 vni 1001 mac 02:00:00:00:00:09, learned from 198.51.100.1", ""}},
		{"imported by default, IPv6", "2001:db8:1::5", "2001:db8:2::5", p1001, none, []*path{testPath("::/0", "2001:db8::1", "1:1001")}, destination, want{true, "::/0 leads to 2001:db8::1", ""}},
		{"behind this node", "10.1.0.5", "10.1.0.6", p1001, func(s *GoBGP) { s.testSend(key(1001, "10.1.0.0/16")) }, []*path{testPath("10.0.0.0/8", "192.0.2.1", "64512:1001")}, destination,
			want{true, "behind this node, which announces 10.1.0.0/16", ""}},
		{"nothing received", "10.1.0.5", "10.2.0.5", p1001, none, []*path{testPath("10.3.0.0/16", "192.0.2.1", "64512:1001")}, destination, want{false, "no neighbour sent", "route reflector"}},
		{"other route target", "10.1.0.5", "10.2.0.5", p1001, none, []*path{testPath("10.2.0.0/16", "192.0.2.1", "64512:77")}, destination,
			want{false, "10.2.0.0/16 from 198.51.100.1 (RD 192.0.2.1:1, next hop 192.0.2.1, label 1001) carries the route targets 64512:77 and VRF 1001 imports 64512:5 and", "evpn.vrfs.1001.import"}},
		{"another tenant's", "10.1.0.5", "10.2.0.5", p1001, none, []*path{fault("10.2.0.0/16", "192.0.2.1", func(p *path) { p.hop.VNI = 1002 }, "64512:1002")}, destination,
			want{false, "1 routes of other VRFs do", "if one of them is meant"}},
		{"rejected", "10.1.0.5", "10.2.0.5", p1001, none, []*path{fault("10.2.0.0/16", "192.0.2.1", func(p *path) { p.hasMAC = false }, "64512:1001")}, destination,
			want{false, "is rejected: no-router-mac; the imports are not complete yet", "router MAC extended community"}},
		{"rejected, and a shorter one is there", "10.1.0.5", "10.2.0.5", p1001, none, []*path{testPath("10.0.0.0/8", "192.0.2.2", "64512:1001"),
			fault("10.2.0.0/16", "192.0.2.1", func(p *path) { p.gateway = true }, "64512:1001")}, destination, want{true, "10.0.0.0/8 leads to 192.0.2.2 vni 1001 mac 02:00:00:00:00:09, learned from 198.51.100.1; longer, and not imported: 10.2.0.0/16", ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := stopped(t)
			s.SetPolicies(policies(tt.policy))
			tt.set(s)
			for _, p := range tt.paths {
				s.in.rib.apply(p, epoch)
			}
			s.in.rib.settle(epoch)
			steps, err := s.Explain(t.Context(), status.Query{VRF: 1001, Src: netip.MustParseAddr(tt.src), Dst: netip.MustParseAddr(tt.dst)})
			if err != nil || len(steps) != 4 {
				t.Fatalf("%v, %+v", err, steps)
			}
			got := steps[tt.step]
			if got.Found != tt.want.found || !strings.Contains(got.Detail, tt.want.detail) || !strings.Contains(got.Hint, tt.want.hint) || got.Found == (got.Hint != "") {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestExplainSession(t *testing.T) {
	a, b := netip.MustParseAddr("192.0.2.250"), netip.MustParseAddr("2001:db8::250")
	for _, tt := range []struct {
		neighbors []NeighborStatus
		found     bool
		detail    string
	}{
		{nil, false, "no neighbour is configured"},
		{[]NeighborStatus{{Address: a, State: "active", LastError: "hold timer expired"}, {Address: b, State: "idle"}}, false, "192.0.2.250 active (hold timer expired), 2001:db8::250 idle"},
		{[]NeighborStatus{{Address: a, State: "active"}, {Address: b, State: stateEstablished, Families: FamilyEVPN, LastError: "long ago"}}, true, "192.0.2.250 active, 2001:db8::250 established"},
	} {
		if got := sessionStep(tt.neighbors); got.Found != tt.found || got.Detail != tt.detail || got.Found == (got.Hint != "") {
			t.Errorf("got %+v", got)
		}
	}
}

// TestExplainStale: a row that is kept is told as such, and listed.
func TestExplainStale(t *testing.T) {
	s := stopped(t)
	s.SetPolicies(policies(intent.VRFPolicy{VNI: 1001, Index: 7, AutoImport: true}))
	p := testPath("10.2.0.0/16", "192.0.2.1", "64512:1001")
	gone := *p
	gone.withdrawn = true
	for _, q := range []*path{p, &gone} {
		s.in.rib.apply(q, epoch)
		s.in.rib.settle(epoch)
	}
	steps, _ := s.Explain(t.Context(), status.Query{VRF: 1001, Src: netip.MustParseAddr("10.1.0.5"), Dst: netip.MustParseAddr("10.2.0.5")})
	if last := steps[3]; !last.Found || !strings.Contains(last.Detail, "learned from 198.51.100.1; stale: withdrawn with all other routes of its node") {
		t.Errorf("got %+v", last)
	}
	routes, _ := s.Routes(t.Context())
	if len(routes) != 1 || !routes[0].Stale || len(routes[0].VRFs) != 1 {
		t.Errorf("got %+v", routes)
	}
}

func TestRoutesListing(t *testing.T) {
	s := stopped(t)
	s.SetPolicies(policies(intent.VRFPolicy{VNI: 1001, Index: 7, AutoImport: true, Export: targets("1:1001")}, intent.VRFPolicy{VNI: 1002, Index: 8, Import: targets("1:1001", "1:5")}))
	s.testSend(key(1001, "10.3.0.0/16"))
	noVNI := testPath("10.4.0.0/16", "192.0.2.1", "1:1001")
	noVNI.hop.VNI = 0
	for _, p := range []*path{testPath("10.3.0.0/16", "192.0.2.1", "1:1001", "1:5"), testPath("10.2.0.0/16", "2001:db8::1", "1:77"), noVNI, testPath("2001:db8::/64", "192.0.2.1", "1:5")} {
		s.in.rib.apply(p, epoch)
	}
	routes, err := s.Routes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range routes {
		b := r.Status()
		line := b.Direction + " " + b.Prefix.String() + " " + b.Rejected
		for _, v := range b.VRFs {
			line += " " + v.String()
		}
		got = append(got, line)
	}
	want := "in 10.2.0.0/16 not-imported|out 10.3.0.0/16  1001|in 10.3.0.0/16  1001 1002|in 10.4.0.0/16 vni-zero|in 2001:db8::/64  1002"
	if strings.Join(got, "|") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "|"), want)
	}
}

func TestRDNotation(t *testing.T) {
	for want, r := range map[string]rd{
		"64512:70000":  {0, 0, 0xfc, 0, 0, 1, 0x11, 0x70},
		"192.0.2.1:7":  {0, 1, 192, 0, 2, 1, 0, 7},
		"4200000000:7": {0, 2, 0xfa, 0x56, 0xea, 0, 0, 7},
	} {
		if got := r.String(); got != want {
			t.Errorf("%v is %s, want %s", [8]byte(r), got, want)
		}
	}
}

// A route is announced when a neighbour has a session for it.
func TestExplainAnnounced(t *testing.T) {
	s := stopped(t)
	s.SetPolicies(policies(intent.VRFPolicy{VNI: 1001, Index: 7, Export: targets("64512:1001")}))
	s.testSend(key(1001, "10.1.0.0/16"))
	v := view{q: status.Query{VRF: 1001, Src: netip.MustParseAddr("10.1.0.5")}, srcOwn: s.out.longest(1001, netip.MustParseAddr("10.1.0.5"))}
	up := NeighborStatus{State: stateEstablished, Families: FamilyEVPN}
	got := v.sourceStep(Status{Neighbors: []NeighborStatus{up, {State: "active"}}})
	if !got.Found || got.Hint != "" || !strings.Contains(got.Detail, "10.1.0.0/16 is announced to 1 neighbours: RD 192.0.2.9:7, label 1001, next hop 192.0.2.9, route targets") {
		t.Errorf("got %+v", got)
	}
}
