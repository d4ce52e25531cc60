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
	Tunnel   time.Duration // with one that reads, or writes, the tunnel key besides: without it no packet of the fabric comes, or goes
	Live     time.Duration // with the program itself
}

// Ratio is the program against the one that only redirects, without the wrapper.
func (t Timing) Ratio() float64 { return t.ratio(t.Live) }

// Floor is the ratio of a program that does no more than it must: a redirect and
// the tunnel key.
func (t Timing) Floor() float64 { return t.ratio(t.Tunnel) }

func (t Timing) ratio(d time.Duration) float64 {
	return float64(d-t.Wrapper) / float64(t.Redirect-t.Wrapper)
}

// maxRepeat keeps a packet with a TTL of 255 alive: PROG_TEST_RUN repeats on the
// packet as the program left it.
const maxRepeat = 250

// comparison is a program that does a part of what a live one does.
func comparison(name string, first ...asm.Instruction) (*ebpf.Program, error) {
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: name, Type: ebpf.SchedCLS, License: "Dual BSD/GPL",
		Instructions: append(first, asm.Mov.Imm(asm.R1, 1), asm.Mov.Imm(asm.R2, 0), asm.FnRedirect.Call(), asm.Return()),
	})
	if err != nil {
		return nil, fmt.Errorf("load the program %s: %w", name, err)
	}
	return prog, nil
}

// tunnelKey calls a helper with the whole struct bpf_tunnel_key on the stack.
func tunnelKey(helper asm.BuiltinFunc) (out asm.Instructions) {
	const size, slot = 44, 48
	out = append(out, asm.Mov.Imm(asm.R3, 0))
	for at := int16(-slot); at < 0; at += 8 {
		out = append(out, asm.StoreMem(asm.RFP, at, asm.R3, asm.DWord))
	}
	return append(out, asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -slot), asm.Mov.Imm(asm.R3, size), asm.Mov.Imm(asm.R4, 0), helper.Call())
}

// passes is the verdict of a packet that is left to the host.
func (req TraceRequest) passes() uint32 {
	if req.Program == UnderlayIn {
		return actUnspec
	}
	return actRedirect
}

// Measure times a packet in its program. The packet has to be such that what
// comes out goes in again: TTL 255, MAC addresses that change places. All are
// measured in turns, so that a change of the clock rate meets all.
func (t *Tracer) Measure(req TraceRequest, rounds int) (res Timing, err error) {
	helper := asm.FnSkbGetTunnelKey
	if req.Program == OverlayIn {
		helper = asm.FnSkbSetTunnelKey
	}
	redirect, err := comparison("redirect_only")
	if err != nil {
		return res, err
	}
	defer redirect.Close()
	tunnel, err := comparison("tunnel_only", tunnelKey(helper)...)
	if err != nil {
		return res, err
	}
	defer tunnel.Close()
	if err := t.scratch.Put(uint32(0), req.setup()); err != nil {
		return res, fmt.Errorf("scratch map: %w", err)
	}
	slot := uint32(req.Program)
	defer func() {
		err = errors.Join(err, t.slots.Put(slot, t.live[req.Program]), t.scratch.Put(uint32(0), bpfTrace{}))
	}()
	samples := make([][]time.Duration, 4)
	for range rounds {
		for i, prog := range []*ebpf.Program{nil, redirect, tunnel, t.live[req.Program]} {
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
			if prog != nil && verdict != actRedirect && verdict != req.passes() {
				return res, fmt.Errorf("%s dropped the packet", req.Program)
			}
			samples[i] = append(samples[i], each)
		}
	}
	low := func(s []time.Duration) time.Duration { return slices.Sorted(slices.Values(s))[len(s)/4] }
	return Timing{Wrapper: low(samples[0]), Redirect: low(samples[1]), Tunnel: low(samples[2]), Live: low(samples[3])}, nil
}
