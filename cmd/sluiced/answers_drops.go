package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// sampler is the one reader of the sampled drops; it passes them to everybody
// who follows them, and drops what a slow follower does not take.
type sampler struct {
	mu        sync.Mutex
	followers map[chan ebpf.Sample]struct{}
	// unreadable counts samples that were passed over.
	unreadable atomic.Uint64
}

// sampleSource is an ebpf.Reader.
type sampleSource interface {
	Samples(ctx context.Context, each func(ebpf.Sample), unreadable func(error)) error
}

func (s *sampler) run(ctx context.Context, r sampleSource, log *slog.Logger) error {
	return ignoreEnd(r.Samples(ctx, s.tell, func(err error) {
		if s.unreadable.Add(1) == 1 {
			log.Error("a sampled drop cannot be read; more of them are only counted", "error", err)
		}
	}))
}

func (s *sampler) tell(sample ebpf.Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.followers {
		select {
		case c <- sample:
		default:
		}
	}
}

func (s *sampler) follow() (samples chan ebpf.Sample, end func()) {
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

// drops are those of the node, if there is one, and of metadata.
func (d *daemon) drops() (status.Drops, error) {
	out := status.Drops{Counts: []status.DropCount{}}
	n, err := d.present()
	if n != nil {
		out, err = n.dp.Reader().DropStatus()
	}
	if err != nil {
		return out, err
	}
	w := d.metadata.work()
	if w == nil {
		return out, nil
	}
	counts, err := w.taps.DropStatus()
	out.Counts = append(out.Counts, counts...)
	return out, err
}

func (n *node) followDrops(ctx context.Context, emit func(status.Drop) error) error {
	samples, end := n.samples.follow()
	defer end()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-n.ended:
			return errors.New("the node was started anew")
		case s := <-samples:
			if err := emit(s.Status()); err != nil {
				return err
			}
		}
	}
}
