package plane

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/loop"
)

// Samples is the one reader of the sampled drops; it passes them to everybody
// who follows them, and drops what a slow follower does not take.
type Samples struct {
	mu        sync.Mutex
	followers map[chan ebpf.Sample]struct{}
	// unreadable counts samples that were passed over.
	unreadable atomic.Uint64
}

// sampleSource is an ebpf.Reader.
type sampleSource interface {
	Samples(ctx context.Context, each func(ebpf.Sample), unreadable func(error)) error
}

// Run reads the samples until ctx ends.
func (s *Samples) Run(ctx context.Context, r sampleSource, log *slog.Logger) error {
	return loop.IgnoreEnd(r.Samples(ctx, s.tell, func(err error) {
		if s.unreadable.Add(1) == 1 {
			log.Error("a sampled drop cannot be read; more of them are only counted", "error", err)
		}
	}))
}

func (s *Samples) tell(sample ebpf.Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.followers {
		select {
		case c <- sample:
		default:
		}
	}
}

// Follow passes samples on until end is called.
func (s *Samples) Follow() (samples chan ebpf.Sample, end func()) {
	c := make(chan ebpf.Sample, 256)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.followers == nil {
		s.followers = map[chan ebpf.Sample]struct{}{}
	}
	s.followers[c] = struct{}{}
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.followers, c)
	}
}

// Unreadable counts samples that were passed over.
func (s *Samples) Unreadable() uint64 { return s.unreadable.Load() }
