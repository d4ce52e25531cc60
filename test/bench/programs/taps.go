package programs

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"time"

	cilium "github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
)

// Passing is what a packet that is no matter of metadata takes in tap_in: each that a
// machine sends pays it.
type Passing struct {
	Family int
	// Empty is a program that lets everything pass, and Tap is tap_in; both with the test
	// run itself. Each is the first quartile of many.
	Empty, Tap time.Duration
}

// RunTaps measures tap_in in a directory on a bpffs that is the bench's own.
func RunTaps(ctx context.Context, dir string, rounds int) ([]Passing, error) {
	dir = filepath.Join(dir, "taps")
	d, err := taps.Load(taps.Config{Dir: dir, StaleAfter: time.Minute, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if err := d.Put(taps.Source{IfIndex: 1, MAC: near, Addr: near4, Number: 1, Answer: far}); err != nil {
		return nil, err
	}
	tap, err := pinned.Open(dir, "tap_in")
	if err != nil {
		return nil, err
	}
	defer tap.Close()
	empty, err := cilium.NewProgram(&cilium.ProgramSpec{Type: cilium.SchedCLS, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, -1), asm.Return()}})
	if err != nil {
		return nil, fmt.Errorf("load the empty program: %w", err)
	}
	defer empty.Close()
	var out []Passing
	for family, addrs := range map[int][2]netip.Addr{4: {near4, far4}, 6: {near6, far6}} {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		p, err := passing(empty, tap.Program, frame(addrs[0], addrs[1], near, far), rounds)
		if err != nil {
			return out, fmt.Errorf("tap_in, IPv%d: %w", family, err)
		}
		p.Family = family
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b Passing) int { return a.Family - b.Family })
	return out, nil
}

// passing measures in turns, so that a change of the clock rate meets both.
func passing(empty, tap *cilium.Program, packet []byte, rounds int) (Passing, error) {
	const repeat = 1000
	samples := [2][]time.Duration{}
	for range rounds {
		for i, prog := range []*cilium.Program{empty, tap} {
			verdict, each, err := prog.Benchmark(packet, repeat, nil)
			if err != nil {
				return Passing{}, err
			}
			if int32(verdict) != -1 {
				return Passing{}, fmt.Errorf("verdict %d", int32(verdict))
			}
			samples[i] = append(samples[i], each)
		}
	}
	low := func(s []time.Duration) time.Duration { return slices.Sorted(slices.Values(s))[len(s)/4] }
	return Passing{Empty: low(samples[0]), Tap: low(samples[1])}, nil
}
