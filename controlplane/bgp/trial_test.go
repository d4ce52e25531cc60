package bgp

import (
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gobgplog "github.com/osrg/gobgp/v3/pkg/log"
	wire "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// lives are the processes of a node, one after the other, with one file.
type lives struct {
	cfg    Trial
	others []Neighbor // beside those of begin
	at     time.Duration
	trials *trials
}

var lifelong = []string{"192.0.2.1", "192.0.2.2", "2001:db8::3"}

// begin starts the next one and gives for how long each neighbour has to wait.
func (l *lives) begin() map[string]time.Duration {
	cfg := Config{Trial: l.cfg, RestartTime: 2 * time.Minute, Neighbors: slices.Clone(l.others)}
	for _, a := range lifelong {
		cfg.Neighbors = append(cfg.Neighbors, Neighbor{Address: netip.MustParseAddr(a)})
	}
	l.trials = newTrials(cfg, slog.New(slog.DiscardHandler))
	l.trials.now = func() time.Time { return epoch.Add(l.at) }
	l.trials.load()
	out := map[string]time.Duration{}
	for _, a := range lifelong {
		if until, deaths := l.trials.heldBack(netip.MustParseAddr(a)); deaths > 0 {
			out[a] = until.Sub(epoch.Add(l.at))
		}
	}
	return out
}

func (l *lives) state(to wire.FSMState, neighbors ...string) {
	for _, a := range neighbors {
		l.trials.note("state changed", gobgplog.Fields{"Key": a, "new": to.String()})
	}
}

func TestTrial(t *testing.T) {
	l := &lives{cfg: Trial{File: filepath.Join(t.TempDir(), "trials.json"), Crashed: true, Time: 10 * time.Second, HoldBack: 5 * time.Second}}
	all := lifelong
	everybody := func(netip.Addr) bool { return true }
	for n := range trialDeaths {
		if held := l.begin(); len(held) != 0 {
			t.Fatalf("start %d: held back: %v", n, held)
		}
		l.state(wire.BGP_FSM_OPENSENT, all...)
		l.state(wire.BGP_FSM_ESTABLISHED, all[:2]...)
		l.state(wire.BGP_FSM_IDLE, all[2]) // its session never is
		l.trials.pass(everybody)
		l.at += time.Second
	}
	held := l.begin()
	if len(held) != 2 || held["192.0.2.1"] != 5*time.Second || held["192.0.2.2"] != 15*time.Second {
		t.Fatalf("after %d deaths: %v", trialDeaths, held)
	}
	// The first one passes, with the second one it ends again.
	l.at += 5 * time.Second
	l.state(wire.BGP_FSM_OPENSENT, all[0])
	l.state(wire.BGP_FSM_ESTABLISHED, all[0])
	l.at += 10 * time.Second
	l.trials.pass(func(netip.Addr) bool { return false }) // not there any more
	l.trials.pass(everybody)
	l.state(wire.BGP_FSM_OPENSENT, all[1])
	for _, want := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, longestHoldBack, longestHoldBack} {
		held = l.begin()
		if len(held) != 1 || held["192.0.2.2"] != want {
			t.Fatalf("held back: %v, want the second one for %s", held, want)
		}
		l.state(wire.BGP_FSM_OPENSENT, all[1])
	}
	l.cfg.Crashed = false
	if held = l.begin(); held["192.0.2.2"] != longestHoldBack || l.trials.deaths[all[1]] != trialDeaths+7 {
		t.Errorf("after an end by somebody else: %v, counts %v", held, l.trials.deaths)
	}
	l.state(wire.BGP_FSM_OPENSENT, all[1])
	l.trials.stop()
	l.state(wire.BGP_FSM_OPENSENT, all[1]) // the process is not gone yet
	if held = l.begin(); len(held) != 0 {
		t.Errorf("after an end that was meant: %v", held)
	}
	if err := os.WriteFile(l.cfg.File, []byte(`{"version":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if held = l.begin(); len(held) != 0 {
		t.Errorf("of a file that is cut off: %v", held)
	}
}

// A neighbour whose messages end the process is found and held back, and the others
// are not, however often it comes.
func TestDeadlyNeighbor(t *testing.T) {
	t.Parallel() // it mostly waits
	good, bad := startRawPeer(t, wire.RF_EVPN), startRawPeerAt(t, "127.0.0.2", wire.RF_EVPN)
	good.greet(message(wire.BGP_MSG_UPDATE, update(route("10.2.0.0/24", 2)...)))
	deadly := []byte{77} // of no type that there is: the server follows a nil pointer
	if fateOf(deadly[0], nil) != kills {
		t.Fatal("the BGP server has learned to live with it: find another message")
	}
	bad.greet(message(deadly[0], nil))
	cfg := nodeConfig(1, good.neighbor(), bad.neighbor())
	cfg.Trial = Trial{File: filepath.Join(t.TempDir(), "trials.json"), Crashed: true, Time: 2 * time.Second, HoldBack: 3 * time.Second}
	var s *speaker
	heldBack := func() bool {
		select {
		case <-s.exited:
			return false
		default:
			n := s.do(childCommand{Status: true}).Status.Neighbors
			return !n[1].HeldBack.IsZero() && strings.HasPrefix(n[1].LastError, "held back until ") && n[1].State != stateEstablished && n[0].State == stateEstablished
		}
	}
	start := func() {
		s = startSpeakerIn(t, "", cfg, mayDie)
		s.do(childCommand{Policies: []childPolicy{red}})
	}
	for range trialDeaths {
		start()
		<-s.exited
	}
	start() // both are suspects: one comes, then the other
	<-s.exited
	start()
	eventually(t, "the good one's route, while the bad one is held back", func() bool {
		return s.hops(intent.NewRouteKey(1001, netip.MustParsePrefix("10.2.0.0/24"))) != nil && heldBack()
	})
	bad.greet(nil)
	eventually(t, "the bad one is no longer bad and no longer held back", func() bool {
		n := s.do(childCommand{Status: true}).Status.Neighbors
		b, err := os.ReadFile(cfg.Trial.File)
		return n[0].State == stateEstablished && n[0].Flaps == 0 && n[1].State == stateEstablished && err == nil && !strings.Contains(string(b), "127.0.0.2")
	})
}

// Whoever asks who is held back may hold the lock that tells who is established.
func TestTrialAsksWithoutItsLock(t *testing.T) {
	l := &lives{cfg: Trial{File: filepath.Join(t.TempDir(), "trials.json"), Time: time.Second}}
	l.begin()
	l.state(wire.BGP_FSM_OPENSENT, "192.0.2.1")
	l.at += time.Minute
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.trials.pass(func(a netip.Addr) bool {
			asked := make(chan struct{})
			go func() { defer close(asked); l.trials.heldBack(a) }()
			<-asked
			return true
		})
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("it waits for itself")
	}
	if len(l.trials.young) != 0 {
		t.Error("its session is young for ever")
	}
}
