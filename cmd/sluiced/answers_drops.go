package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/packet"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func (n *node) drops() (status.Drops, error) {
	counts, err := n.dp.Reader().Drops()
	out := status.Drops{Counts: dropCounts(counts)}
	return out, err
}

func dropCounts(counts map[drop.Reason]uint64) []status.DropCount {
	out := []status.DropCount{}
	for _, r := range drop.All() {
		out = append(out, status.DropCount{Reason: r.String(), Description: r.Explain(), Packets: counts[r]})
	}
	slices.SortStableFunc(out, func(a, b status.DropCount) int { return cmp.Compare(b.Packets, a.Packets) })
	return out
}

// sampler is the one reader of the sampled drops; it passes them to everybody
// who follows them, and drops what a slow follower does not take.
type sampler struct {
	mu        sync.Mutex
	followers map[chan ebpf.Sample]struct{}
}

func (s *sampler) run(ctx context.Context, r *ebpf.Reader) error {
	return ignoreEnd(r.Samples(ctx, func(sample ebpf.Sample) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for c := range s.followers {
			select {
			case c <- sample:
			default:
			}
		}
	}))
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

func (n *node) followDrops(ctx context.Context, emit func(status.Drop) error) error {
	samples, end := n.samples.follow()
	defer end()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-n.ended:
			return fmt.Errorf("the node was started anew")
		case s := <-samples:
			if err := emit(dropOf(s)); err != nil {
				return err
			}
		}
	}
}

func dropOf(s ebpf.Sample) status.Drop {
	f := packet.Parse(s.Frame)
	d := status.Drop{Time: wallClock(s.Uptime), Reason: s.Reason.String(), Program: s.Program.String(), VNI: s.VNI, Src: f.Src, Dst: f.Dst,
		Protocol: f.Protocol, SrcPort: f.SrcPort, DstPort: f.DstPort, Length: uint32(s.Len), Packet: s.Frame}
	if l, err := net.InterfaceByIndex(int(s.IfIndex)); err == nil {
		d.Interface = l.Name
	}
	return d
}

// wallClock turns a time of CLOCK_MONOTONIC into one that people read.
func wallClock(monotonic time.Duration) time.Time {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
		return time.Now()
	}
	return time.Now().Add(monotonic - time.Duration(now.Nano()))
}
