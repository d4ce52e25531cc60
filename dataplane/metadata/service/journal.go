package service

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/ovn-sluice/sluice/dataplane/metadata/proxy"
	"github.com/ovn-sluice/sluice/pkg/loglimit"
	"github.com/ovn-sluice/sluice/pkg/status"
)

const (
	// kept is how many of the latest requests are remembered.
	kept = 256
	// maxWord is how much of a path, or of a method, is, in bytes: a guest may send
	// thousands.
	maxWord = 256
	// sampleInterval is between two lines of one port's requests that went well.
	sampleInterval = 10 * time.Minute
	// maxSampled bounds the ports that are remembered for it.
	maxSampled = 8192
)

// Journal remembers what became of requests: counted by outcome, the latest as they were,
// and in the log the first of each port within sampleInterval and those that went wrong.
type Journal struct {
	log   *slog.Logger
	limit loglimit.Limit

	mu     sync.Mutex
	counts map[proxy.Outcome]uint64
	latest []status.MetadataRequest // a ring, once it is full
	next   int
	logged map[string]time.Time
}

// NewJournal makes an empty one.
func NewJournal(log *slog.Logger) *Journal {
	return &Journal{log: log, counts: map[proxy.Outcome]uint64{}, logged: map[string]time.Time{}}
}

// Observe takes a request: see proxy.Config.
func (j *Journal) Observe(r proxy.Request) {
	r.Method, r.Path = shortened(r.Method), shortened(r.Path)
	one := status.MetadataRequest{
		Time: r.Time, Port: r.Identity.Port, Instance: r.Identity.Instance, Network: r.Identity.Network, Address: r.Identity.Address,
		Method: r.Method, Path: r.Path, Status: r.Status, Outcome: string(r.Outcome), Took: r.Took,
	}
	now := time.Now()
	j.mu.Lock()
	j.counts[r.Outcome]++
	if len(j.latest) < kept {
		j.latest = append(j.latest, one)
	} else {
		j.latest[j.next] = one
		j.next = (j.next + 1) % kept
	}
	first := r.Outcome == proxy.Answered && j.first(r.Identity.Port, now)
	j.mu.Unlock()
	switch {
	case first:
		j.write(slog.LevelInfo, "metadata request", r, 0)
	case r.Outcome != proxy.Answered:
		if ok, skipped := j.limit.Allow(string(r.Outcome), r.Identity.Port, now); ok {
			j.write(slog.LevelWarn, "metadata request failed", r, skipped)
		}
	}
}

// first tells whether a port has had no line for a while.
func (j *Journal) first(port string, now time.Time) bool {
	if last, had := j.logged[port]; had && now.Sub(last) < sampleInterval {
		return false
	}
	if len(j.logged) >= maxSampled {
		clear(j.logged)
	}
	j.logged[port] = now
	return true
}

func (j *Journal) write(level slog.Level, text string, r proxy.Request, skipped int) {
	address := ""
	if r.Identity.Address.IsValid() {
		address = r.Identity.Address.String()
	}
	j.log.LogAttrs(context.Background(), level, text, slog.String("port", r.Identity.Port), slog.String("instance", r.Identity.Instance),
		slog.String("network", r.Identity.Network), slog.String("address", address), slog.String("method", r.Method), slog.String("path", r.Path),
		slog.Int("status", r.Status), slog.String("outcome", string(r.Outcome)), slog.Duration("took", r.Took), slog.Int("skipped", skipped))
}

// shortened is a path, or a method, as it may be shown.
func shortened(path string) string {
	if len(path) > maxWord {
		path = path[:maxWord] + "…"
	}
	if !utf8.ValidString(path) {
		path = strings.ToValidUTF8(path, "\uFFFD")
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '\uFFFD'
		}
		return r
	}, path)
}

// Latest are the latest requests, the oldest first.
func (j *Journal) Latest() []status.MetadataRequest {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append(slices.Clone(j.latest[j.next:]), j.latest[:j.next]...)
}

// Outcomes counts requests by what became of them; those of which there was none are
// there, too.
func (j *Journal) Outcomes() []status.MetadataOutcome {
	all := proxy.Outcomes()
	out := make([]status.MetadataOutcome, 0, len(all))
	j.mu.Lock()
	defer j.mu.Unlock()
	for outcome, text := range all {
		out = append(out, status.MetadataOutcome{Outcome: string(outcome), Requests: j.counts[outcome], Description: text})
	}
	slices.SortFunc(out, func(a, b status.MetadataOutcome) int { return strings.Compare(a.Outcome, b.Outcome) })
	return out
}
