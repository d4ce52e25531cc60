package bgp

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gobgplog "github.com/osrg/gobgp/v3/pkg/log"
	wire "github.com/osrg/gobgp/v3/pkg/packet/bgp"
)

// Whoever may not be the one is back well before the others drop this node's routes.
func TestHoldsAreShorterThanARestart(t *testing.T) {
	for _, tt := range []struct {
		name               string
		neighbors, counted int
		deaths             int
		first, last        time.Duration
	}{
		{"the only one", 1, 1, 3, 5 * time.Second, 5 * time.Second},
		{"the only one, many times", 1, 1, 30, time.Minute, time.Minute},
		{"all of two, many times", 2, 2, 30, 50 * time.Second, time.Minute},
		{"all of three", 3, 3, 3, 5 * time.Second, 25 * time.Second},
		{"two of three, many times", 3, 2, 30, 50 * time.Second, time.Minute},
		{"all of forty, many times", 40, 40, 30, 30*time.Second + 750*time.Millisecond, time.Minute},
		{"one of forty, many times", 40, 1, 30, longestHoldBack, longestHoldBack},
		{"one of two", 2, 1, 4, 10 * time.Second, 10 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "trials.json")
			cfg := Config{Trial: Trial{File: path, Crashed: true, Time: 10 * time.Second, HoldBack: 5 * time.Second}, RestartTime: 2 * time.Minute}
			var rows []string
			for i := range tt.neighbors {
				a := netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)})
				cfg.Neighbors = append(cfg.Neighbors, Neighbor{Address: a})
				if i < tt.counted {
					rows = append(rows, fmt.Sprintf(`"%s": %d`, a, tt.deaths))
				}
			}
			rows = append(rows, `"203.0.113.1": 99`) // no neighbour any more
			if err := os.WriteFile(path, []byte(`{"version": 1, "deaths": {`+strings.Join(rows, ",")+`}}`), 0o600); err != nil {
				t.Fatal(err)
			}
			trials := newTrials(cfg, slog.New(slog.DiscardHandler))
			trials.now = func() time.Time { return epoch }
			trials.load()
			first, last, held := time.Duration(1<<62), time.Duration(0), 0
			for _, n := range cfg.Neighbors {
				if until, deaths := trials.heldBack(n.Address); deaths > 0 {
					wait := until.Sub(epoch)
					first, last, held = min(first, wait), max(last, wait), held+1
				}
			}
			if held != tt.counted || first != tt.first || last != tt.last {
				t.Errorf("%d wait, from %s to %s; want %d, from %s to %s", held, first, last, tt.counted, tt.first, tt.last)
			}
		})
	}
}

// The neighbour of a link is held back whatever address it has.
func TestTrialOfALink(t *testing.T) {
	l := &lives{cfg: Trial{File: filepath.Join(t.TempDir(), "trials.json"), Crashed: true, Time: 10 * time.Second, HoldBack: 5 * time.Second}}
	l.others = []Neighbor{{Interface: "eth1"}, {Interface: "eth2"}}
	address := func(n int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("fe80::%d%%eth1", n)) }
	for n := range trialDeaths {
		l.begin()
		if _, deaths := l.trials.heldBack(address(n)); deaths > 0 {
			t.Fatalf("held back after %d deaths", deaths)
		}
		l.trials.follow("eth1", netip.Addr{}, address(10+n))
		l.state(wire.BGP_FSM_OPENSENT, address(10+n).String())
		l.trials.follow("eth1", address(10+n), address(n))
		if len(l.trials.young) != 0 {
			t.Fatal("who has gone from the link is young for ever")
		}
		l.state(wire.BGP_FSM_OPENSENT, address(n).String())
		l.state(wire.BGP_FSM_IDLE, address(10+n).String()) // the former one's session ends late
		l.trials.pass(func(netip.Addr) bool { return false })
	}
	l.begin()
	l.trials.follow("eth1", netip.Addr{}, address(9))
	l.trials.follow("eth2", netip.Addr{}, netip.MustParseAddr("fe80::8%eth2"))
	until, deaths := l.trials.heldBack(address(9).WithZone(""))
	if deaths != trialDeaths || !until.After(epoch) {
		t.Errorf("a new address of the same: until %s, %d", until, deaths)
	}
	if _, deaths := l.trials.heldBack(netip.MustParseAddr("fe80::8")); deaths > 0 {
		t.Error("the other link's is held back")
	}
}

// Only a session that begins waits for the disk, and a full one is tried again.
func TestTrialLeavesTheDiskAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	l := &lives{cfg: Trial{File: filepath.Join(dir, "trials.json"), Time: time.Second}}
	l.begin()
	l.state(wire.BGP_FSM_OPENSENT, "192.0.2.1")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	everybody := func(netip.Addr) bool { return true }
	content := func() string {
		b, _ := os.ReadFile(l.cfg.File)
		return string(b)
	}
	if l.trials.pass(everybody); !strings.Contains(content(), "192.0.2.1") {
		t.Errorf("once it can be written: %q", content())
	}
	l.trials.writing.Lock() // as long as the disk is busy
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.trials.note("state changed", gobgplog.Fields{"Key": "192.0.2.1", "new": wire.BGP_FSM_ESTABLISHED.String()})
		l.trials.note("state changed", gobgplog.Fields{"Key": "192.0.2.1", "new": wire.BGP_FSM_IDLE.String()})
		l.trials.heldBack(netip.MustParseAddr("192.0.2.1"))
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("it waits for the disk")
	}
	l.trials.writing.Unlock()
	if l.trials.pass(everybody); strings.Contains(content(), "192.0.2.1") {
		t.Errorf("after the session: %q", content())
	}
}
