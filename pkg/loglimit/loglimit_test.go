package loglimit

import (
	"fmt"
	"testing"
	"time"
)

func TestLimit(t *testing.T) {
	var l Limit
	epoch := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	a, b := key{"update", "192.0.2.1"}, key{"update", "2001:db8::2"}
	logged := func(k key, at time.Duration, n int) (lines, skipped int) {
		for range n {
			if ok, s := l.Allow(k.event, k.cause, epoch.Add(at)); ok {
				lines, skipped = lines+1, skipped+s
			}
		}
		return lines, skipped
	}
	for _, tt := range []struct {
		key                   key
		at                    time.Duration
		events, lines, before int
	}{
		{a, 0, 1000, burst, 0},
		{b, 0, 1, 1, 0}, // another neighbour has its own
		{a, every - 1, 1000, 0, 0},
		{a, every, 1000, 1, 2000 - burst},
		{a, 3 * every, 1000, 2, 999},
		{a, time.Hour, 1000, burst, 998},
	} {
		if lines, before := logged(tt.key, tt.at, tt.events); lines != tt.lines || before != tt.before {
			t.Errorf("%v at %s: %d lines that stand for %d more, want %d and %d", tt.key, tt.at, lines, before, tt.lines, tt.before)
		}
	}
	for i := range 10 * most {
		l.Allow(fmt.Sprint(i), "", epoch)
	}
	if len(l.events) > most {
		t.Errorf("%d events are remembered", len(l.events))
	}
}
