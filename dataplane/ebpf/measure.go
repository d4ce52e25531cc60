package ebpf

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// Timing is how long one packet takes, each the first quartile of many runs.
type Timing struct {
	Wrapper  time.Duration // the wrapper of test runs alone
	Redirect time.Duration // with a program that only redirects
	Live     time.Duration // with the program itself
}

// Ratio is the program against the one that only redirects, without the wrapper.
func (t Timing) Ratio() float64 {
	return float64(t.Live-t.Wrapper) / float64(t.Redirect-t.Wrapper)
}

// maxRepeat keeps a packet with a TTL of 255 alive: PROG_TEST_RUN repeats on the
// packet as the program left it.
const maxRepeat = 250

// Measure times a packet in its program. The packet has to be such that what
// comes out goes in again: TTL 255, MAC addresses that change places. The three
// are measured in turns, so that a change of the clock rate meets all.
func (t *Tracer) Measure(req TraceRequest, rounds int) (res Timing, err error) {
	redirect, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "redirect_only", Type: ebpf.SchedCLS, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{
			asm.Mov.Imm(asm.R1, 1), asm.Mov.Imm(asm.R2, 0), asm.FnRedirect.Call(), asm.Return(),
		},
	})
	if err != nil {
		return res, fmt.Errorf("load the program that only redirects: %w", err)
	}
	defer redirect.Close()
	if err := t.scratch.Put(uint32(0), req.setup()); err != nil {
		return res, fmt.Errorf("scratch map: %w", err)
	}
	slot := uint32(req.Program)
	defer func() {
		err = errors.Join(err, t.slots.Put(slot, t.live[slot]), t.scratch.Put(uint32(0), bpfTrace{}))
	}()
	samples := make([][]time.Duration, 3)
	for range rounds {
		for i, prog := range []*ebpf.Program{nil, redirect, t.live[slot]} {
			if prog == nil {
				err = t.slots.Delete(slot)
			} else {
				err = t.slots.Put(slot, prog)
			}
			if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
				return res, fmt.Errorf("slot of the wrapper: %w", err)
			}
			verdict, _, each, err := t.test(t.wrapper, req, maxRepeat)
			if err != nil {
				return res, err
			}
			if prog != nil && verdict != actRedirect {
				return res, fmt.Errorf("%s dropped the packet", req.Program)
			}
			samples[i] = append(samples[i], each)
		}
	}
	low := func(s []time.Duration) time.Duration { return slices.Sorted(slices.Values(s))[len(s)/4] }
	return Timing{Wrapper: low(samples[0]), Redirect: low(samples[1]), Live: low(samples[2])}, nil
}
