package bgp

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	api "github.com/osrg/gobgp/v3/api"
	"google.golang.org/protobuf/types/known/anypb"
)

// restarting is a speaker that restarts, without neighbours.
func restarting(t *testing.T) *GoBGP {
	t.Helper()
	cfg := testConfig()
	cfg.Restarting = true
	s, err := New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A neighbour with EVPN has End-of-RIB when all is announced again, however long OVN is away;
// one without when plain unicast is; and one that may be the way to OVN in any case.
func TestEndOfRIBInItsTurn(t *testing.T) {
	const never = time.Duration(-1)
	for _, tc := range []struct {
		name                                string
		families                            Families
		alone, afterUnicast, afterAllAtHour time.Duration // after how long it comes
	}{
		{"EVPN", FamilyEVPN, never, never, time.Hour},
		{"plain unicast", FamilyIPv4 | FamilyIPv6, DefaultDeferralTime, 0, DefaultDeferralTime},
		{"both", FamilyEVPN | FamilyIPv6, DefaultDeferralTime, DefaultDeferralTime, DefaultDeferralTime},
	} {
		for what, want := range map[string]time.Duration{"alone": tc.alone, "unicast": tc.afterUnicast, "all at an hour": tc.afterAllAtHour} {
			synctest.Test(t, func(t *testing.T) {
				s := restarting(t)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
				defer cancel()
				switch what {
				case "unicast":
					s.UnicastReady()
				case "all at an hour":
					go func() {
						time.Sleep(time.Hour)
						s.Ready()
					}()
				}
				begin := time.Now()
				got := never
				if s.awaitReady(ctx, Neighbor{Address: netip.MustParseAddr("192.0.2.9"), Families: tc.families}) {
					got = time.Since(begin)
				}
				if got != want {
					t.Errorf("%s, %s: after %v, want %v", tc.name, what, got, want)
				}
				s.Ready()
				time.Sleep(2 * time.Hour)
				synctest.Wait()
			})
		}
	}
}

// Nothing is waited for where nobody keeps anything of the node.
func TestFreshEndOfRIBAtOnce(t *testing.T) {
	s := restarting(t)
	s.cfg.Restarting = false
	if !s.awaitReady(t.Context(), Neighbor{Families: FamilyEVPN}) {
		t.Error("waits")
	}
}

// What the neighbours have sent is not all that is imported while policies may be
// missing, also after their time is over; plain unicast has none.
func TestImportsAreIncompleteWithoutPolicies(t *testing.T) {
	cfg := testConfig()
	n := Neighbor{Address: netip.MustParseAddr("192.0.2.9"), ASN: 64512, Families: FamilyEVPN | FamilyIPv4}
	cfg.Neighbors = []Neighbor{n}
	s, err := New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	inSync := func() (evpn, unicast bool) {
		s.in.mu.Lock()
		defer s.in.mu.Unlock()
		return s.in.inSync, s.unicastIn.inSync
	}
	s.giveUpWaiting(n)
	if evpn, unicast := inSync(); evpn || !unicast {
		t.Errorf("before: EVPN %t, unicast %t", evpn, unicast)
	}
	s.PoliciesComplete()
	if evpn, _ := inSync(); !evpn {
		t.Error("after: not in sync")
	}
}

// What the BGP server withdraws for a neighbour whose session the node ends itself is
// not taken.
func TestNothingIsTakenAtTheEnd(t *testing.T) {
	s := restarting(t)
	tell := func(withdraw bool) string {
		p, err := encodeUnicast(netip.MustParsePrefix("10.0.0.2/32"), unicastForm{}, withdraw)
		if err != nil {
			t.Fatal(err)
		}
		hop, err := anypb.New(&api.NextHopAttribute{NextHop: "192.0.2.9"})
		if err != nil {
			t.Fatal(err)
		}
		p.NeighborIp, p.Pattrs, p.Validation = "192.0.2.9", append(p.Pattrs[:1], hop), &api.Validation{}
		s.event(&api.WatchEventResponse{Event: &api.WatchEventResponse_Table{Table: &api.WatchEventResponse_TableEvent{Paths: []*api.Path{p}}}})
		all, _ := s.Unicast()
		return learned(childReport{Learned: all})
	}
	const there = "10.0.0.2/32 192.0.2.9"
	if got := tell(false); got != there {
		t.Fatalf("learned %q", got)
	}
	if got := tell(true); got != "" {
		t.Errorf("withdrawn, and it has %q", got)
	}
	tell(false)
	s.endIntake()
	if got := tell(true); got != there {
		t.Errorf("at the end it has %q", got)
	}
}

// A node that ends its sessions, to be another one, takes its routes back from the
// neighbours, and leaves what it learned as it is.
func TestEndOfSessionsTakesNothingLearned(t *testing.T) {
	second := listening(2, 1799, "127.0.0.22")
	second.ASN, second.Neighbors = 65001, []Neighbor{{Address: netip.MustParseAddr("127.0.0.21"), ASN: 64512, Passive: true, Families: FamilyEVPN | FamilyIPv4}}
	b := startSpeaker(t, second)
	a := startSpeaker(t, nodeConfig(1, Neighbor{Address: netip.MustParseAddr("127.0.0.22"), Port: 1799, ASN: 65001,
		LocalAddress: netip.MustParseAddr("127.0.0.21"), Families: FamilyEVPN | FamilyIPv4, ConnectRetry: time.Second}))
	b.do(childCommand{Unicast: prefixes("10.0.0.2/32")})
	a.do(childCommand{Unicast: prefixes("10.0.0.1/32")})
	eventually(t, "the routes are there", func() bool {
		return learned(a.do(childCommand{})) == "10.0.0.2/32 127.0.0.22" && learned(b.do(childCommand{})) == "10.0.0.1/32 127.0.0.21"
	})
	if err := json.NewEncoder(a.stdin).Encode(childCommand{Stop: true, Linger: 300 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if got := learned(<-a.replies); got != "10.0.0.2/32 127.0.0.22" {
		t.Errorf("at the end it has %q", got)
	}
	eventually(t, "its own is taken back", func() bool { return learned(b.do(childCommand{})) == "" })
}
