package bfd

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// A neighbour that goes up and down in each packet does not fill the disk, and BGP
// hears of every change.
func TestLogOfAHostileNeighbor(t *testing.T) {
	var out bytes.Buffer
	changes := 0
	peer := Peer{Neighbor: netip.MustParseAddr("2001:db8::9"), Settings: Settings{MinTx: time.Second, MinRx: time.Second, Multiplier: 3}}
	s, err := New(Config{Peers: []Peer{peer}, Changed: func(netip.Addr, Path) { changes++ }}, slog.New(slog.NewTextHandler(&out, nil)))
	if err != nil {
		t.Fatal(err)
	}
	e, now := s.ends[0], time.Now()
	e.session = NewSession(peer.Settings, 1, func() float64 { return 0 }, now)
	const times = 10_000
	for range times {
		e.session.state = Up
		e.follow(Down, now)
		e.session.state = Down
		e.follow(Up, now)
	}
	if lines := strings.Count(out.String(), "\n"); lines != 20 || changes != 2*times || e.flaps != times {
		t.Errorf("%d lines, %d changes, %d flaps", lines, changes, e.flaps)
	}
	out.Reset()
	e.session.state = Up
	if e.follow(Down, now.Add(time.Minute)); !strings.Contains(out.String(), "skipped=9990") {
		t.Errorf("a minute later: %s", &out)
	}
}
