package bgp

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

var epoch = time.Unix(1_700_000_000, 0)

func TestBest(t *testing.T) {
	with := func(hop string, change func(*rank)) *path {
		p := testPath("10.0.0.0/8", hop)
		if change != nil {
			change(&p.rank)
		}
		return p
	}
	fresh := with("192.0.2.1", nil)
	fresh.hop.RouterMAC[5] = 77
	stale := with("192.0.2.1", func(r *rank) { r.stale = true })
	stale.key.neighbor = netip.MustParseAddr("198.51.100.2")
	for _, tt := range []struct {
		name  string
		paths []*path
		want  []int
	}{
		{"none", nil, nil},
		{"equal paths are shared", []*path{with("192.0.2.1", nil), with("192.0.2.2", nil), with("2001:db8::1", nil)}, []int{0, 1, 2}},
		{"local preference before path length", []*path{with("192.0.2.1", func(r *rank) { r.localPref, r.pathLen = 200, 9 }), with("192.0.2.2", nil)}, []int{0}},
		{"shorter path", []*path{with("192.0.2.1", func(r *rank) { r.pathLen = 2 }), with("192.0.2.2", func(r *rank) { r.pathLen, r.origin = 1, 2 })}, []int{1}},
		{"lower origin before MED", []*path{with("192.0.2.1", func(r *rank) { r.origin = 2 }), with("192.0.2.2", func(r *rank) { r.med = 5 })}, []int{1}},
		{"MED within one AS", []*path{with("192.0.2.1", func(r *rank) { r.neighborAS, r.med = 1, 9 }), with("192.0.2.2", func(r *rank) { r.neighborAS, r.med = 1, 5 })}, []int{1}},
		{"MED not across ASes", []*path{with("192.0.2.1", func(r *rank) { r.neighborAS, r.med = 1, 9 }), with("192.0.2.2", func(r *rank) { r.neighborAS, r.med = 2, 5 })}, []int{0, 1}},
		{"MED before eBGP", []*path{with("192.0.2.1", func(r *rank) { r.ebgp, r.med = true, 9 }), with("192.0.2.2", nil)}, []int{1}},
		{"eBGP before iBGP", []*path{with("192.0.2.1", nil), with("192.0.2.2", func(r *rank) { r.ebgp = true })}, []int{1}},
		{"long-lived stale last", []*path{with("192.0.2.1", func(r *rank) { r.longStale, r.localPref = true, 900 }), with("192.0.2.2", nil)}, []int{1}},
		{"stale is as good", []*path{with("192.0.2.1", func(r *rank) { r.stale = true }), with("192.0.2.2", nil)}, []int{0, 1}},
		{"of two copies the fresh one", []*path{stale, fresh}, []int{1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var hops []intent.NextHop
			for _, i := range tt.want {
				hops = append(hops, tt.paths[i].hop)
			}
			random := rand.New(rand.NewSource(1))
			for range 5 {
				shuffled := append([]*path(nil), tt.paths...)
				random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
				if got, want := best(shuffled), intent.NewNextHopSet(hops...); got != want {
					t.Fatalf("got %s, want %s", got, want)
				}
			}
		})
	}
}

func notOwn(netip.Addr) bool { return false }

func policies(list ...intent.VRFPolicy) map[intent.VNI]intent.VRFPolicy {
	m := map[intent.VNI]intent.VRFPolicy{}
	for _, p := range list {
		m[p.VNI] = p
	}
	return m
}

func TestImportByTarget(t *testing.T) {
	r := newRIB(notOwn, time.Second, 0)
	r.apply(testPath("10.1.0.0/16", "192.0.2.1", "65001:1001"), epoch)
	r.apply(testPath("10.2.0.0/16", "192.0.2.1", "65001:5"), epoch)
	r.apply(testPath("10.3.0.0/16", "192.0.2.1"), epoch)
	has := func(want ...string) {
		t.Helper()
		r.settle(epoch)
		got := map[string]bool{}
		for vni, vrf := range r.routes {
			for p := range vrf {
				got[fmt.Sprintf("%d %s", vni, p)] = true
			}
		}
		if len(got) != len(want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		for _, w := range want {
			if !got[w] {
				t.Fatalf("got %v, want %v", got, want)
			}
		}
	}
	has()
	r.setPolicies(policies(intent.VRFPolicy{VNI: 1001, Index: 1, AutoImport: true}))
	has("1001 10.1.0.0/16")
	r.setPolicies(policies(intent.VRFPolicy{VNI: 1001, Index: 1, AutoImport: true, Import: targets("65001:5")}, intent.VRFPolicy{VNI: 7, Index: 2, Import: targets("65001:5")}))
	has("1001 10.1.0.0/16", "1001 10.2.0.0/16", "7 10.2.0.0/16")
	r.setPolicies(policies(intent.VRFPolicy{VNI: 1001, Index: 1, Import: targets("65001:9")}, intent.VRFPolicy{VNI: 7, Index: 2, Import: targets("65001:5")}))
	has("7 10.2.0.0/16")
	p := testPath("10.2.0.0/16", "192.0.2.1", "65001:9")
	r.apply(p, epoch)
	has("1001 10.2.0.0/16")
	gone := *p
	gone.withdrawn = true
	r.apply(&gone, epoch)
	has()
	r.setPolicies(nil)
	if len(r.importers) != 0 || len(r.routes) != 0 {
		t.Errorf("left over: %v %v", r.importers, r.routes)
	}
}

func TestVTEPStaysForAWhile(t *testing.T) {
	r := newRIB(notOwn, 30*time.Second, 0)
	p := testPath("10.1.0.0/16", "192.0.2.1", "65001:1001")
	gone := *p
	gone.withdrawn = true
	steps := []struct {
		path *path
		at   time.Duration
		want int
	}{{p, 0, 1}, {&gone, 10 * time.Second, 1}, {nil, 39 * time.Second, 1}, {p, 39 * time.Second, 1}, {nil, 80 * time.Second, 1},
		{&gone, 100 * time.Second, 1}, {nil, 129 * time.Second, 1}, {nil, 130 * time.Second, 0}}
	for i, s := range steps {
		if s.path != nil {
			c := *s.path
			r.apply(&c, epoch.Add(s.at))
		}
		r.settle(epoch.Add(s.at))
		if len(r.vteps) != s.want {
			t.Errorf("step %d: %d VTEPs, want %d", i, len(r.vteps), s.want)
		}
	}
}

// TestAnyOrderSameTables: the tables depend on the final paths and policies only.
func TestAnyOrderSameTables(t *testing.T) {
	for seed := range int64(200) {
		rnd := rand.New(rand.NewSource(seed))
		r := newRIB(notOwn, 0, 0)
		state, policy := map[pathKey]*path{}, map[intent.VNI]intent.VRFPolicy{}
		rts := []string{"1:1", "1:2", "2:1", "2:2", "3:3"}
		for range 100 {
			if rnd.Intn(5) == 0 {
				policy = map[intent.VNI]intent.VRFPolicy{}
				for vni := intent.VNI(1); vni <= 3; vni++ {
					if rnd.Intn(3) > 0 {
						policy[vni] = intent.VRFPolicy{VNI: vni, Index: uint16(vni), AutoImport: rnd.Intn(2) == 0, Import: targets(rts[rnd.Intn(5)])}
					}
				}
				r.setPolicies(policy)
			}
			p := testPath(fmt.Sprintf("10.%d.0.0/16", rnd.Intn(3)), fmt.Sprintf("192.0.2.%d", 1+rnd.Intn(3)), rts[rnd.Intn(5)], rts[rnd.Intn(5)])
			p.hop.VNI = intent.VNI(rnd.Intn(4)) // sometimes 0: rejected
			p.rank.localPref = uint32(rnd.Intn(2))
			p.withdrawn = rnd.Intn(3) == 0
			c := *p
			if r.apply(p, epoch); p.withdrawn {
				delete(state, p.key)
			} else {
				state[p.key] = &c
			}
			if rnd.Intn(2) == 0 {
				r.settle(epoch)
			}
		}
		r.settle(epoch)
		once := newRIB(notOwn, 0, 0)
		once.setPolicies(policy)
		for _, p := range state {
			once.apply(p, epoch)
		}
		once.settle(epoch)
		if fmt.Sprint(r.routes) != fmt.Sprint(once.routes) || len(r.vteps) != len(once.vteps) {
			t.Fatalf("seed %d:\n got %v\nwant %v", seed, r.routes, once.routes)
		}
	}
}

func TestWatchMergesAndStartsWhole(t *testing.T) {
	in := imports{rib: newRIB(notOwn, 0, 0), feeds: set[*feed]{}}
	in.rib.setPolicies(policies(intent.VRFPolicy{VNI: 1001, Index: 1, AutoImport: true}))
	apply := func(p *path) {
		in.mu.Lock()
		defer in.mu.Unlock()
		in.rib.apply(p, epoch)
		keys, vteps := in.rib.settle(epoch)
		in.publish(keys, vteps)
	}
	apply(testPath("10.1.0.0/16", "192.0.2.1", "1:1001"))
	ctx, cancel := context.WithCancel(context.Background())
	updates, proceed, ended := make(chan ImportUpdate), make(chan struct{}), make(chan error)
	go func() { ended <- in.watch(ctx, func(u ImportUpdate) { updates <- u; <-proceed }) }()
	first := <-updates
	if len(first.Upserts) != 1 || len(first.VTEPs) != 1 || first.InSync {
		t.Errorf("first update %+v", first)
	}
	for i := range 100 { // while the watcher is busy
		p := testPath("10.2.0.0/16", "192.0.2.1", "1:1001")
		p.hop.VNI = intent.VNI(i + 1)
		apply(p)
	}
	gone := testPath("10.1.0.0/16", "192.0.2.1", "1:1001")
	gone.withdrawn = true
	apply(gone)
	proceed <- struct{}{}
	next := <-updates
	if len(next.Upserts) != 1 || len(next.Deletes) != 1 || next.Upserts[0].NextHops.All()[0].VNI != 100 {
		t.Errorf("merged update %+v", next)
	}
	cancel()
	proceed <- struct{}{}
	if err := <-ended; err != context.Canceled {
		t.Errorf("watch ended with %v", err)
	}
}

// TestNextHopFamily: a next hop that this node cannot send to takes no share of
// the traffic.
func TestNextHopFamily(t *testing.T) {
	for _, tt := range []struct {
		vtep4, vtep6 string
		want         string
	}{
		{"192.0.2.1", "", "192.0.2.2"},
		{"", "2001:db8::1", "2001:db8::2"},
		{"192.0.2.1", "2001:db8::1", "192.0.2.2 2001:db8::2"},
	} {
		cfg := testConfig()
		cfg.VTEP4, cfg.VTEP6 = netip.Addr{}, netip.Addr{}
		if tt.vtep4 != "" {
			cfg.VTEP4 = netip.MustParseAddr(tt.vtep4)
		}
		if tt.vtep6 != "" {
			cfg.VTEP6 = netip.MustParseAddr(tt.vtep6)
		}
		s, err := New(cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		r := s.in.rib
		r.setPolicies(policies(intent.VRFPolicy{VNI: 1001, Index: 1, AutoImport: true}))
		for i, hop := range []string{"192.0.2.2", "2001:db8::2"} {
			p := testPath("10.0.0.0/24", hop, "1:1001")
			p.key.rd = wireRD(netip.MustParseAddr("192.0.2.2"), uint16(i))
			r.apply(p, epoch)
		}
		r.settle(epoch)
		var got []string
		for _, h := range r.routes[1001][netip.MustParsePrefix("10.0.0.0/24")].All() {
			got = append(got, h.VTEP.String())
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("VTEPs %q and %q: next hops %v, want %s", tt.vtep4, tt.vtep6, got, tt.want)
		}
	}
}
