package main

import (
	"context"
	"errors"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// planes are the data planes that are there.
func (d *daemon) planes() (out []*ebpf.Dataplane) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.node != nil {
		out = append(out, d.node.dp)
	}
	if r := d.balancing.Running(); r != nil {
		out = append(out, r.Dataplane)
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
	if _, err := d.present(); err != nil && d.balancing.Running() == nil {
		return out, err
	}
	if len(d.planes()) > 0 {
		packets, err := d.dropped()
		if err != nil {
			return out, err
		}
		out = ebpf.DropStatus(packets)
	}
	w := d.metadata.Running()
	if w == nil {
		return out, nil
	}
	counts, err := w.Taps.DropStatus()
	out.Counts = append(out.Counts, counts...)
	return out, err
}

// followDrops tells the sampled drops of all planes until ctx ends, or the node.
func (d *daemon) followDrops(ctx context.Context, emit func(status.Drop) error) error {
	w := d.balancing.Running()
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
		fabric, end = n.samples.Follow()
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
			return errors.New("the node was started anew")
		case s = <-fabric:
		case s = <-taps:
		}
		if err := emit(s.Status()); err != nil {
			return err
		}
	}
}
