package report

import (
	"context"
	"errors"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// planes are the data planes that are there.
func (r *Report) planes() (out []*ebpf.Dataplane) {
	if n, err := r.running(); err == nil {
		out = append(out, n.Dataplane())
	}
	if b := r.balancing.Running(); b != nil {
		out = append(out, b.Dataplane)
	}
	return out
}

// dropped counts the packets that the planes dropped.
func (r *Report) dropped() (map[drop.Reason]uint64, error) {
	out := map[drop.Reason]uint64{}
	var errs []error
	for _, p := range r.planes() {
		counts, err := p.Reader().Drops()
		errs = append(errs, err)
		for reason, packets := range counts {
			out[reason] += packets
		}
	}
	return out, errors.Join(errs...)
}

// planeDrops are those of the planes; without one there is nothing to read.
func (r *Report) planeDrops() (status.Drops, error) {
	if len(r.planes()) == 0 {
		return status.Drops{Counts: []status.DropCount{}}, nil
	}
	packets, err := r.dropped()
	out := ebpf.DropStatus(packets)
	if n, err := r.running(); err == nil {
		out.Unreadable = n.Samples().Unreadable()
	}
	if w := r.balancing.Running(); w != nil {
		out.Unreadable += w.Samples.Unreadable()
	}
	return out, err
}

// Drops are those of the planes, and of metadata.
func (r *Report) Drops() (status.Drops, error) {
	if _, err := r.role.Present(); err != nil && r.balancing.Running() == nil {
		return status.Drops{Counts: []status.DropCount{}}, err
	}
	out, err := r.planeDrops()
	w := r.metadata.Running()
	if err != nil || w == nil {
		return out, err
	}
	counts, err := w.Taps.DropStatus()
	out.Counts = append(out.Counts, counts...)
	return out, err
}

// FollowDrops tells the sampled drops of all planes until ctx ends, or the node.
func (r *Report) FollowDrops(ctx context.Context, emit func(status.Drop) error) error {
	w := r.balancing.Running()
	g, err := r.role.Present()
	if err != nil && w == nil {
		return err
	}
	var fabric, taps chan ebpf.Sample
	var ended <-chan struct{}
	var end func()
	switch {
	case g == nil && w == nil:
		_, err := r.running()
		return err
	case g != nil:
		ended = g.Ended()
		fabric, end = g.Samples().Follow()
		defer end()
	}
	if w != nil {
		taps, end = w.Samples.Follow()
		defer end()
	}
	for {
		var s ebpf.Sample
		select {
		case <-ctx.Done():
			return nil
		case <-ended:
			return errors.New("the data plane was restarted; run the command again")
		case s = <-fabric:
		case s = <-taps:
		}
		if err := emit(s.Status()); err != nil {
			return err
		}
	}
}
