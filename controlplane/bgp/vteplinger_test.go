package bgp

import (
	"fmt"
	"maps"
	"math/rand"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// scene drives a rib through time. What a watcher saw go is in deletes.
type scene struct {
	t       *testing.T
	rib     *rib
	shown   map[intent.RouteKey]intent.NextHopSet
	deletes int
}

func newScene(t *testing.T, linger time.Duration) *scene {
	r := newRIB(notOwn, 30*time.Second, linger)
	r.setPolicies(policies(intent.VRFPolicy{VNI: 1001, Index: 1, AutoImport: true}, intent.VRFPolicy{VNI: 1002, Index: 2, AutoImport: true}))
	return &scene{t: t, rib: r, shown: map[intent.RouteKey]intent.NextHopSet{}}
}

// do applies steps at a time: "+A 10.0.0.1/32" announces by node A in VRF 1001,
// "-A …" withdraws, "+A2 …" is the same route through a second reflector,
// "+A/1002 …" is in another VRF, "+me …" is this node's own.
func (s *scene) do(at time.Duration, steps ...string) {
	s.t.Helper()
	now := epoch.Add(at)
	for {
		due, ok := s.rib.nextSettle()
		if !ok || due.After(now) {
			break
		}
		s.settle(due)
	}
	for _, step := range steps {
		who, prefix, _ := strings.Cut(step[1:], " ")
		if who == "me" {
			s.rib.setLocal(key(1001, prefix), step[0] == '+')
		} else {
			s.rib.apply(scenePath(who, prefix, step[0] == '-'), now)
		}
		s.settle(now)
	}
	s.settle(now)
}

func scenePath(who, prefix string, withdrawn bool) *path {
	who, vni, other := strings.Cut(who, "/")
	if !other {
		vni = "1001"
	}
	p := testPath(prefix, fmt.Sprintf("192.0.2.%d", who[0]), "1:"+vni)
	if len(who) > 1 {
		p.key.neighbor = netip.MustParseAddr("198.51.100.2")
	}
	p.key.rd[7] = vni[3]
	p.withdrawn = withdrawn
	return p
}

func (s *scene) settle(now time.Time) {
	keys, _ := s.rib.settle(now)
	for _, k := range keys {
		if hops := s.rib.routes[k.VNI][k.Prefix]; hops != "" {
			s.shown[k] = hops
		} else if _, ok := s.shown[k]; ok {
			delete(s.shown, k)
			s.deletes++
		}
	}
}

// rows are "prefix>nodes", sorted, with the VRF where it is not 1001.
func (s *scene) rows() string {
	var out []string
	for k, hops := range s.shown {
		row := k.Prefix.String() + ">"
		if k.VNI != 1001 {
			row = fmt.Sprintf("%d:%s", k.VNI, row)
		}
		for _, h := range hops.All() {
			b := h.VTEP.As4()
			row += string(rune(b[3]))
			if s.rib.vteps[h.VTEP] == nil {
				s.t.Errorf("the VTEP of %s is not known", row)
			}
		}
		out = append(out, row)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

const ms = time.Millisecond

func TestLostPeers(t *testing.T) {
	type step struct {
		at   time.Duration
		do   []string
		want string
	}
	three := []string{"+A 10.0.0.1/32", "+A 10.0.0.2/32", "+A 2001:db8::1/128"}
	lost := []string{"-A 10.0.0.1/32", "-A 10.0.0.2/32", "-A 2001:db8::1/128"}
	all := "10.0.0.1/32>A 10.0.0.2/32>A 2001:db8::1/128>A"
	for _, tt := range []struct {
		name    string
		steps   []step
		deletes int
	}{
		{"a lost node stays for the linger", []step{{0, three, all}, {9000 * ms, lost, all}, {38 * time.Second, nil, all}, {39 * time.Second, nil, ""}}, 3},
		{"a node that restarts loses nothing", []step{{0, three, all}, {9000 * ms, lost, all}, {11 * time.Second, three, all}, {60 * time.Second, nil, all}}, 0},
		{"one withdrawal counts at once", []step{{0, three, all}, {9000 * ms, lost[:1], all}, {9025 * ms, nil, "10.0.0.2/32>A 2001:db8::1/128>A"}}, 1},
		{"a slow batch comes back whole", []step{{0, three, all}, {9000 * ms, lost[:1], all}, {9500 * ms, lost[1:2], "10.0.0.2/32>A 2001:db8::1/128>A"},
			{10500 * ms, lost[2:], all}, {40500 * ms, nil, ""}}, 4 + 1},
		{"what went long before stays gone", []step{{0, three, all}, {9000 * ms, lost[:1], all}, {12 * time.Second, lost[1:], "10.0.0.2/32>A 2001:db8::1/128>A"}}, 1},
		{"a batch in many small steps", []step{{0, three, all}, {9000 * ms, lost[:1], all}, {9020 * ms, lost[1:2], all}, {9040 * ms, nil, all}, {9042 * ms, lost[2:], all}}, 0},
		{"the same prefix from anybody replaces", []step{{0, three, all}, {9000 * ms, lost, all},
			{10 * time.Second, []string{"+B 10.0.0.1/32"}, "10.0.0.1/32>B 10.0.0.2/32>A 2001:db8::1/128>A"},
			{20 * time.Second, []string{"+C 10.0.0.1/32", "-B 10.0.0.1/32"}, "10.0.0.1/32>C 10.0.0.2/32>A 2001:db8::1/128>A"}}, 0},
		{"another tenant's does not", []step{{0, three, all}, {9000 * ms, lost, all},
			{10 * time.Second, []string{"+B/1002 10.0.0.1/32", "+B/1002 10.0.0.0/24"}, "10.0.0.1/32>A 10.0.0.2/32>A 1002:10.0.0.0/24>B 1002:10.0.0.1/32>B 2001:db8::1/128>A"}}, 0},
		{"a replaced route never comes back", []step{{0, three, all}, {9000 * ms, append([]string{"+B 10.0.0.1/32"}, lost...), "10.0.0.1/32>B 10.0.0.2/32>A 2001:db8::1/128>A"}}, 0},
		{"a covering route that arrives", []step{{0, three, all}, {9000 * ms, lost, all},
			{10 * time.Second, []string{"+B 10.0.0.0/24"}, "10.0.0.0/24>B 2001:db8::1/128>A"}}, 2},
		{"a covering route that is there", []step{{0, append([]string{"+B 10.0.0.0/30"}, three...), "10.0.0.0/30>B " + all},
			{9000 * ms, lost, "10.0.0.0/30>B 2001:db8::1/128>A"}}, 2},
		{"the default route does not cover", []step{{0, append([]string{"+B 0.0.0.0/0", "+B ::/0"}, three...), "0.0.0.0/0>B " + all + " ::/0>B"},
			{9000 * ms, lost, "0.0.0.0/0>B " + all + " ::/0>B"}}, 0},
		{"its own subnet does not cover", []step{{0, append([]string{"+A 10.0.0.0/24"}, three...), "10.0.0.0/24>A " + all},
			{9000 * ms, append([]string{"-A 10.0.0.0/24"}, lost...), "10.0.0.0/24>A " + all}, {10 * time.Second, []string{"+A 10.0.0.0/24"}, "10.0.0.0/24>A " + all}}, 0},
		{"this node's own route replaces", []step{{0, three, all}, {9000 * ms, lost, all}, {10 * time.Second, []string{"+me 10.0.0.1/32"}, "10.0.0.2/32>A 2001:db8::1/128>A"},
			{11 * time.Second, []string{"+me 10.0.0.0/28"}, "2001:db8::1/128>A"}}, 2},
		{"this node's own subnet covers", []step{{0, append([]string{"+me 10.0.0.0/28"}, three...), all}, {9000 * ms, lost, "2001:db8::1/128>A"}}, 2},
		{"what is not announced again ends after 5 s", []step{{0, three, all}, {9000 * ms, lost, all}, {12 * time.Second, three[:1], all},
			{16900 * ms, nil, all}, {17 * time.Second, nil, "10.0.0.1/32>A"}}, 2},
		{"a node that is slow to announce", []step{{0, three, all}, {9000 * ms, lost, all}, {12 * time.Second, three[:1], all},
			{16 * time.Second, three[1:2], all}, {20 * time.Second, three[2:], all}, {60 * time.Second, nil, all}}, 0},
		{"or with the linger, if that is first", []step{{0, three, all}, {9000 * ms, lost, all}, {37 * time.Second, three[:1], all}, {39 * time.Second, nil, "10.0.0.1/32>A"}}, 2},
		{"a node that dies again while it comes back", []step{{0, three, all}, {9000 * ms, lost, all}, {12 * time.Second, three[:1], all}, {13 * time.Second, lost[:1], all},
			{20 * time.Second, nil, all}, {39 * time.Second, nil, "10.0.0.1/32>A"}, {43 * time.Second, nil, ""}}, 3},
		{"two reflectors", []step{{0, append([]string{"+A2 10.0.0.1/32", "+A2 10.0.0.2/32", "+A2 2001:db8::1/128"}, three...), all}, {9000 * ms, lost, all},
			{20 * time.Second, nil, all}, {30 * time.Second, []string{"-A2 10.0.0.1/32", "-A2 10.0.0.2/32", "-A2 2001:db8::1/128"}, all}, {61 * time.Second, nil, ""}}, 3},
		{"equal paths: the other one carries on", []step{{0, []string{"+A 10.0.0.1/32", "+B 10.0.0.1/32"}, "10.0.0.1/32>AB"}, {9000 * ms, []string{"-A 10.0.0.1/32"}, "10.0.0.1/32>B"},
			{9100 * ms, []string{"-B 10.0.0.1/32"}, "10.0.0.1/32>B"}}, 0},
		{"a single route lingers", []step{{0, three[:1], "10.0.0.1/32>A"}, {9000 * ms, lost[:1], "10.0.0.1/32>A"}, {39 * time.Second, nil, ""}}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t, 30*time.Second)
			for _, st := range tt.steps {
				s.do(st.at, st.do...)
				if got := s.rows(); got != st.want {
					t.Errorf("at %s after %v:\n got %s\nwant %s", st.at, st.do, got, st.want)
				}
			}
			if s.deletes != tt.deletes {
				t.Errorf("%d deletes seen, want %d", s.deletes, tt.deletes)
			}
		})
	}
}

func TestNoLinger(t *testing.T) {
	s := newScene(t, -1)
	s.do(0, "+A 10.0.0.1/32", "+A 10.0.0.2/32")
	s.do(1, "-A 10.0.0.1/32")
	if got := s.rows(); got != "10.0.0.2/32>A" {
		t.Error(got)
	}
	if s.do(2, "-A 10.0.0.2/32"); s.rows() != "" {
		t.Error(s.rows())
	}
}

// What was kept over a restart goes when its time is over, without another linger;
// what goes after a neighbour's End-of-RIB lingers like any other.
func TestStaleRoutesHaveHadTheirTime(t *testing.T) {
	for _, tt := range []struct {
		name string
		rank rank
		away bool
		want int
	}{
		{"fresh", rank{}, false, 1},
		{"fresh, and the session is lost", rank{}, true, 1},
		{"stale, and the neighbour is back", rank{stale: true}, false, 1},
		{"stale, and the neighbour is not back", rank{stale: true}, true, 0},
		{"long-lived stale at somebody", rank{longStale: true}, false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t, 30*time.Second)
			p := scenePath("A", "10.0.0.1/32", false)
			p.rank = tt.rank
			s.rib.apply(p, epoch)
			s.settle(epoch)
			if tt.away {
				s.rib.away[p.key.neighbor] = struct{}{}
			}
			s.do(time.Second, "-A 10.0.0.1/32")
			if s.do(5 * time.Second); len(s.shown) != tt.want {
				t.Errorf("%d rows are left, want %d", len(s.shown), tt.want)
			}
		})
	}
}

// TestManyWithdrawals: a reflector needs seconds to withdraw all routes of a big
// node, most of which are other tenants' here.
func TestManyWithdrawals(t *testing.T) {
	host := func(i int) string { return fmt.Sprintf("10.0.%d.%d/32", i/256, i%256) }
	for _, tt := range []struct {
		name string
		// every: one in so many routes is imported here.
		every, withdrawn     int
		deletes, left, later int
	}{
		{"lost: nothing is deleted", 1, 480, 0, 480, 480},
		{"lost, most is not imported", 100, 480, 0, 5, 5},
		{"lost, in more time than a withdrawal waits: all comes back", 1, 800, 500, 800, 800},
		{"a part of it: what is left stays", 1, 100, 0, 480, 380},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t, 30*time.Second)
			total := max(tt.withdrawn, 480)
			who := func(i int) string {
				if i%tt.every == 0 {
					return "A "
				}
				return "A/1003 "
			}
			for i := range total {
				s.do(0, "+"+who(i)+host(i))
			}
			at := 9000 * ms
			for i := range tt.withdrawn {
				s.do(at, "-"+who(i)+host(i))
				at += 10 * ms
			}
			if s.deletes != tt.deletes || len(s.shown) != tt.left {
				t.Errorf("%d deletes and %d rows at the end, want %d and %d", s.deletes, len(s.shown), tt.deletes, tt.left)
			}
			if s.do(at + 300*ms); len(s.shown) != tt.later {
				t.Errorf("%d rows a little later, want %d", len(s.shown), tt.later)
			}
		})
	}
}

// TestLingerAnyHistory: in any history a row with a live path is what the live
// paths say; a row without one is kept at most for the linger and only towards a
// node that announced it; and in the end nothing is left of it.
func TestLingerAnyHistory(t *testing.T) {
	const linger = 10 * time.Second
	prefixes := []string{"10.0.0.1/32", "10.0.0.2/32", "10.0.0.0/24", "0.0.0.0/0", "2001:db8::1/128", "2001:db8::/64"}
	for seed := range int64(150) {
		rnd := rand.New(rand.NewSource(seed))
		s := newScene(t, linger)
		live, at := map[pathKey]*path{}, time.Duration(0)
		lastLive := map[intent.RouteKey]time.Duration{}
		for range 150 {
			at += []time.Duration{0, 0, ms, 20 * ms, 30 * ms, 500 * ms, 3 * time.Second}[rnd.Intn(7)]
			who := string("ABC"[rnd.Intn(3)]) + []string{"", "2", "/1002"}[rnd.Intn(3)]
			var batch []*path
			if rnd.Intn(6) == 0 { // its session ends
				for _, p := range live {
					if p.hop.VTEP == scenePath(who, prefixes[0], false).hop.VTEP {
						c := *p
						c.withdrawn = true
						batch = append(batch, &c)
					}
				}
			} else {
				batch = append(batch, scenePath(who, prefixes[rnd.Intn(len(prefixes))], rnd.Intn(3) == 0))
			}
			for _, p := range batch {
				c := *p
				if s.rib.apply(p, epoch.Add(at)); p.withdrawn {
					delete(live, p.key)
				} else {
					live[p.key] = &c
				}
				if rnd.Intn(2) == 0 {
					s.settle(epoch.Add(at))
				}
			}
			s.settle(epoch.Add(at))
			want := liveRows(live)
			for k, hops := range want {
				lastLive[k] = at
				if s.shown[k] != hops {
					t.Fatalf("seed %d: %s is %v, and the live paths say %v", seed, k, s.shown[k], hops)
				}
			}
			for k := range s.shown {
				// A batch may have begun before its end, and the sweep is periodic.
				if age := at - lastLive[k]; want[k] == "" && age > linger+2*batchTime+3*time.Second {
					t.Fatalf("seed %d: %s is kept for %s", seed, k, age)
				}
			}
			s.rows() // every VTEP is known
		}
		for range 4 {
			at += linger
			s.settle(epoch.Add(at))
		}
		if want := liveRows(live); !maps.Equal(s.shown, want) || len(s.rib.ghosts.rows) != 0 || len(s.rib.ghosts.haunted) != 0 || len(s.rib.ghosts.settling) != 0 {
			t.Fatalf("seed %d:\n got %v\nwant %v\nghosts %v", seed, s.shown, want, s.rib.ghosts)
		}
	}
}

// liveRows are the tables of the live paths alone.
func liveRows(live map[pathKey]*path) map[intent.RouteKey]intent.NextHopSet {
	r := newRIB(notOwn, 0, 0)
	r.setPolicies(policies(intent.VRFPolicy{VNI: 1001, Index: 1, AutoImport: true}, intent.VRFPolicy{VNI: 1002, Index: 2, AutoImport: true}))
	for _, p := range live {
		c := *p
		r.apply(&c, epoch)
	}
	r.settle(epoch)
	out := map[intent.RouteKey]intent.NextHopSet{}
	for vni, vrf := range r.routes {
		for p, hops := range vrf {
			out[intent.RouteKey{VNI: vni, Prefix: p}] = hops
		}
	}
	return out
}
