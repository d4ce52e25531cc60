package bgp

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	gobgplog "github.com/osrg/gobgp/v3/pkg/log"
)

func TestLogLimit(t *testing.T) {
	var l logLimit
	a, b := logKey{"update", "192.0.2.1"}, logKey{"update", "192.0.2.2"}
	logged := func(k logKey, at time.Duration, n int) (lines, skipped int) {
		for range n {
			if ok, s := l.allow(k, epoch.Add(at)); ok {
				lines, skipped = lines+1, skipped+s
			}
		}
		return lines, skipped
	}
	for _, tt := range []struct {
		key                   logKey
		at                    time.Duration
		events, lines, before int
	}{
		{a, 0, 1000, logBurst, 0},
		{b, 0, 1, 1, 0}, // another neighbour has its own
		{a, logEvery - 1, 1000, 0, 0},
		{a, logEvery, 1000, 1, 2000 - logBurst},
		{a, 3 * logEvery, 1000, 2, 999},
		{a, time.Hour, 1000, logBurst, 998},
	} {
		if lines, before := logged(tt.key, tt.at, tt.events); lines != tt.lines || before != tt.before {
			t.Errorf("%v at %s: %d lines that stand for %d more, want %d and %d", tt.key, tt.at, lines, before, tt.lines, tt.before)
		}
	}
	for i := range 10 * logKeys {
		l.allow(logKey{fmt.Sprint(i), ""}, epoch)
	}
	if len(l.events) > logKeys {
		t.Errorf("%d events are remembered", len(l.events))
	}
}

// A neighbour that sends a wrong UPDATE ten thousand times does not fill the disk.
func TestLogOfAHostileNeighbor(t *testing.T) {
	var out bytes.Buffer
	l := serverLog{log: slog.New(slog.NewTextHandler(&out, nil)), ends: newSessionEnds(nodeConfig(1)), trials: newTrials(Config{}, slog.New(slog.DiscardHandler)), limit: &logLimit{}}
	for range 10_000 {
		l.Warn("the received Update message was treated as withdraw", gobgplog.Fields{"Topic": "Peer", "Key": "192.0.2.9", "Error": errors.New("bad origin")})
	}
	l.Warn("another event", gobgplog.Fields{"Topic": "Peer", "Key": "192.0.2.9"})
	lines := strings.Count(out.String(), "\n")
	if lines < logBurst+1 || lines > logBurst+2 || !strings.Contains(out.String(), "another event") {
		t.Errorf("%d lines:\n%s", lines, &out)
	}
}
