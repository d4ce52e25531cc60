package bgp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

func testConfig() Config {
	return Config{ASN: 64512, SystemID: "a", VTEP4: netip.MustParseAddr("192.0.2.1")}
}

// peerView plays the steps as a peer sees them: by NLRI.
type peerView map[nlri]type5

func (v peerView) run(o *outbox, keys []intent.RouteKey) []string {
	var words []string
	for _, st := range o.plan(keys) {
		if o.needed(st) {
			if st.withdraw {
				delete(v, st.route.nlri())
				words = append(words, fmt.Sprintf("-%d %s", st.route.index, st.key))
			} else {
				v[st.route.nlri()] = st.route
				words = append(words, fmt.Sprintf("+%d %s", st.route.index, st.key))
			}
		}
		o.done(st)
	}
	return words
}

func TestPlan(t *testing.T) {
	k := key(1001, "10.0.0.0/24")
	other := key(1002, "10.0.0.0/24")
	o, view := newOutbox(testConfig().withDefaults()), peerView{}
	step := func(name, want string, keys []intent.RouteKey) {
		t.Helper()
		if got := strings.Join(view.run(o, keys), ", "); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if err := o.want(Announcement{Key: k}); !errors.Is(err, reconcile.ErrNotReady) {
		t.Errorf("without a policy: %v", err)
	}
	step("no policy", "", []intent.RouteKey{k})
	red := intent.VRFPolicy{VNI: 1001, Index: 1, Export: targets("1:1")}
	blue := intent.VRFPolicy{VNI: 1002, Index: 2, Export: targets("1:2")}
	step("policy comes", "+1 1001 10.0.0.0/24", o.setPolicies(policies(red, blue)))
	step("again", "", []intent.RouteKey{k})
	if err := o.want(Announcement{Key: k}); err != nil {
		t.Error(err)
	}
	red.Export = targets("1:1", "1:9")
	step("targets", "+1 1001 10.0.0.0/24", o.setPolicies(policies(red, blue)))
	red.Import, red.AutoImport = targets("9:9"), true
	step("import only", "", o.setPolicies(policies(red, blue)))
	red.Index = 3
	step("index: make before break", "+3 1001 10.0.0.0/24, -1 1001 10.0.0.0/24", o.setPolicies(policies(red, blue)))
	if err := o.want(Announcement{Key: other}); err != nil {
		t.Error(err)
	}
	o.unwant(k)
	step("withdraw first", "-3 1001 10.0.0.0/24, +2 1002 10.0.0.0/24", []intent.RouteKey{other, k})
	step("policy goes", "-2 1002 10.0.0.0/24", o.setPolicies(policies(red)))
	if len(view) != 0 || len(o.sent) != 0 || len(o.holder) != 0 {
		t.Errorf("left over: %v %v %v", view, o.sent, o.holder)
	}
}

// TestPeersSeeTheFinalState: whatever the order, also when VRFs exchange indices.
func TestPeersSeeTheFinalState(t *testing.T) {
	for seed := range int64(300) {
		rnd := rand.New(rand.NewSource(seed))
		o, view := newOutbox(testConfig().withDefaults()), peerView{}
		for range 60 {
			var keys []intent.RouteKey
			if rnd.Intn(3) == 0 {
				m, index := policies(), rnd.Perm(4)
				for vni := intent.VNI(1); vni <= 3; vni++ {
					if rnd.Intn(4) > 0 {
						m[vni] = intent.VRFPolicy{VNI: vni, Index: uint16(index[vni] + 1)}
					}
				}
				keys = o.setPolicies(m)
			}
			for range rnd.Intn(4) {
				k := key(intent.VNI(1+rnd.Intn(3)), fmt.Sprintf("10.0.%d.0/24", rnd.Intn(3)))
				if keys = append(keys, k); rnd.Intn(2) == 0 {
					_ = o.want(Announcement{Key: k})
				} else {
					o.unwant(k)
				}
			}
			view.run(o, keys)
			want := peerView{}
			for vni, vrf := range o.wanted {
				for p := range vrf {
					if r, ok := o.route(intent.RouteKey{VNI: vni, Prefix: p}); ok {
						want[r.nlri()] = r
					}
				}
			}
			if fmt.Sprint(view) != fmt.Sprint(want) || len(o.sent) != len(want) || len(o.holder) != len(want) {
				t.Fatalf("seed %d\n got %v\nwant %v", seed, view, want)
			}
		}
	}
}

func TestBadAnnouncementStopsNoOther(t *testing.T) {
	s, err := New(testConfig(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	failed := s.SetPolicies(policies(
		intent.VRFPolicy{VNI: 1001, Index: 1}, intent.VRFPolicy{VNI: 1002}, intent.VRFPolicy{VNI: 1003, Index: 1}, intent.VRFPolicy{VNI: 1 << 24, Index: 9}))
	if len(failed) != 3 || failed[1001] != nil {
		t.Errorf("policies: %v", failed)
	}
	d := s.Announcements()
	good := intent.Announcement{Key: key(1001, "10.0.0.0/24")}
	late := intent.Announcement{Key: key(1005, "10.0.0.0/24")}
	bad := intent.Announcement{Key: intent.RouteKey{VNI: 1001, Prefix: netip.MustParsePrefix("10.0.0.1/24")}}
	rows := []reconcile.Row[intent.RouteKey, intent.Announcement]{{Key: good.Key, Value: good}, {Key: late.Key, Value: late}, {Key: bad.Key, Value: bad}}
	errs := d.Apply(context.Background(), rows)
	if errs[0] != nil || !errors.Is(errs[1], reconcile.ErrNotReady) || errs[2] == nil {
		t.Errorf("apply: %v", errs)
	}
	want := map[intent.RouteKey]intent.Announcement{good.Key: good, late.Key: {}, bad.Key: {}}
	if got, _ := d.List(context.Background()); !maps.Equal(got, want) {
		t.Errorf("list: %v", got)
	}
	if errs := d.Delete(context.Background(), []intent.RouteKey{good.Key}); errs != nil {
		t.Error(errs)
	}
	if st, err := s.Status(context.Background()); err != nil || st.InSync {
		t.Errorf("in sync although policies may be missing: %+v, %v", st, err)
	}
	s.PoliciesComplete()
	st, err := s.Status(context.Background())
	if err != nil || st.Wanted != 1 || st.Announced != 0 || !st.InSync {
		t.Errorf("status %+v, %v", st, err)
	}
	// When nobody wants it any more it does not come with a policy.
	if errs := d.Delete(context.Background(), []intent.RouteKey{late.Key, bad.Key}); errs != nil {
		t.Error(errs)
	}
	if got, _ := d.List(context.Background()); len(got) != 0 || len(s.out.wanted[1005]) > 0 {
		t.Errorf("list: %v, and %v waits for a policy", got, s.out.wanted[1005])
	}
}

// Nodes without an IPv4 VTEP: their router IDs are told apart, and no neighbour
// refuses one.
func TestRouterID(t *testing.T) {
	seen := map[netip.Addr]string{}
	for i := range 20000 {
		name := fmt.Sprintf("node-%d", i)
		id := RouterID(netip.Addr{}, netip.Addr{}, name)
		if b := id.As4(); b[0] == 0 || b[0] >= 224 || b[0] == 127 || id != RouterID(netip.Addr{}, netip.Addr{}, name) {
			t.Fatalf("%s has %s", name, id)
		}
		if other, taken := seen[id]; taken {
			t.Fatalf("%s and %s have %s", other, name, id)
		}
		seen[id] = name
	}
}

func TestKeepalive(t *testing.T) {
	n := Neighbor{Address: netip.MustParseAddr("198.51.100.1"), ASN: 64512, HoldTime: 90 * time.Second}
	for given, want := range map[time.Duration]uint64{0: 30, 7 * time.Second: 7} {
		n.Keepalive = given
		if got := peerConfig(testConfig(), n, netip.AddrPort{}).Timers.Config.KeepaliveInterval; got != want {
			t.Errorf("keepalive %s: the server gets %d", given, got)
		}
	}
}

func TestValidate(t *testing.T) {
	n := Neighbor{Address: netip.MustParseAddr("198.51.100.1"), ASN: 64512}
	for _, tt := range []struct {
		want   string
		change func(*Config)
	}{
		{"", func(*Config) {}},
		{"", func(c *Config) { c.VTEP4, c.VTEP6 = netip.Addr{}, netip.MustParseAddr("2001:db8::1") }},
		{"AS number", func(c *Config) { c.ASN = 0 }},
		{"router id", func(c *Config) { c.RouterID = netip.MustParseAddr("2001:db8::1") }},
		{"one IPv4 and one IPv6", func(c *Config) { c.VTEP6 = netip.MustParseAddr("192.0.2.2") }},
		{"no VTEP", func(c *Config) { c.VTEP4 = netip.Addr{} }},
		{"router MAC", func(c *Config) { c.SystemID = "" }},
		{"restart time", func(c *Config) { c.RestartTime = time.Hour * 2 }},
		{"listen port", func(c *Config) { c.ListenPort = 70000 }},
		{"twice", func(c *Config) { c.Neighbors = append(c.Neighbors, n) }},
		{"AS number", func(c *Config) { c.Neighbors[0].ASN = 0 }},
		{"unicast", func(c *Config) { c.Neighbors[0].Address = netip.MustParseAddr("224.0.0.1") }},
		{"on another interface", func(c *Config) {
			c.Neighbors = []Neighbor{{Address: netip.MustParseAddr("fe80::1%a"), ASN: 1}, {Address: netip.MustParseAddr("fe80::1%b"), ASN: 1, Password: "p"}}
		}},
		{"", func(c *Config) {
			c.Neighbors = []Neighbor{{Address: netip.MustParseAddr("fe80::1%a"), ASN: 1}, {Address: netip.MustParseAddr("fe80::1%b"), ASN: 1}}
		}},
		{"keepalive", func(c *Config) { c.Neighbors[0].HoldTime, c.Neighbors[0].Keepalive = 9*time.Second, 9*time.Second }},
		{"interface", func(c *Config) { c.Neighbors[0].Address = netip.MustParseAddr("fe80::1") }},
		{"other family", func(c *Config) { c.Neighbors[0].LocalAddress = netip.MustParseAddr("2001:db8::1") }},
		{"exclude", func(c *Config) { c.Neighbors[0].TTLSecurity, c.Neighbors[0].MultihopTTL = 1, 3 }},
		{"eBGP", func(c *Config) { c.Neighbors[0].MultihopTTL = 3 }},
		{"listen port", func(c *Config) { c.Neighbors[0].Passive = true }},
		{"hold time", func(c *Config) { c.Neighbors[0].HoldTime = time.Second }},
		{"80 bytes", func(c *Config) { c.Neighbors[0].Password = strings.Repeat("x", 81) }},
	} {
		c := testConfig()
		c.Neighbors = []Neighbor{n}
		tt.change(&c)
		err := c.Validate()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("want %q, got %v", tt.want, err)
		}
	}
}

func TestDerivedIdentity(t *testing.T) {
	a, b := RouterMAC("chassis-a"), RouterMAC("chassis-b")
	if a == b || a != RouterMAC("chassis-a") || a[0]&3 != 2 {
		t.Errorf("router MACs %s %s", a, b)
	}
	if id := RouterID(netip.Addr{}, netip.Addr{}, "a"); !id.Is4() || id == RouterID(netip.Addr{}, netip.Addr{}, "b") {
		t.Errorf("router id %s", id)
	}
}
