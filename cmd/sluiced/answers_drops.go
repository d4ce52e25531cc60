package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/drop"
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

// planes are the data planes that are there.
func (d *daemon) planes() (out []*ebpf.Dataplane) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.node != nil {
		out = append(out, d.node.dp)
	}
	if d.clients != nil && d.clients.at != nil {
		out = append(out, d.clients.at.dp)
	}
	return out
}

// dropped counts the packets that the planes dropped.
func (d *daemon) dropped() (map[drop.Reason]uint64, error) {
	out := map[drop.Reason]uint64{}
	var errs []error
	for _, p := range d.planes() {
		counts, err := p.Reader().Drops()
		errs = append(errs, err)
		for reason, packets := range counts {
			out[reason] += packets
		}
	}
	return out, errors.Join(errs...)
}

// drops are those of the planes, and of metadata.
func (d *daemon) drops() (status.Drops, error) {
	out := status.Drops{Counts: []status.DropCount{}}
	if _, err := d.present(); err != nil && d.clients.work() == nil {
		return out, err
	}
	if len(d.planes()) > 0 {
		packets, err := d.dropped()
		if err != nil {
			return out, err
		}
		out = ebpf.DropStatus(packets)
	}
	w := d.metadata.work()
	if w == nil {
		return out, nil
	}
	counts, err := w.taps.DropStatus()
	out.Counts = append(out.Counts, counts...)
	return out, err
}

// followDrops tells the sampled drops of all planes until ctx ends, or the node.
func (d *daemon) followDrops(ctx context.Context, emit func(status.Drop) error) error {
	w := d.clients.work()
	n, err := d.present()
	if err != nil && w == nil {
		return err
	}
	var fabric, taps chan ebpf.Sample
	var ended chan struct{}
	var end func()
	switch {
	case n == nil && w == nil:
		_, err := d.running()
		return err
	case n != nil:
		ended = n.ended
		fabric, end = n.samples.follow()
		defer end()
	}
	if w != nil {
		taps, end = w.samples.follow()
		defer end()
	}
	for {
		var s ebpf.Sample
		select {
		case <-ctx.Done():
			return nil
		case <-ended:
			return errors.New("the node was started anew")
		case s = <-fabric:
		case s = <-taps:
		}
		if err := emit(s.Status()); err != nil {
			return err
		}
	}
}
