package forwarding

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// batch is how many frames the generator has in hand: what a NIC delivers in one
// poll.
const batch = 64

// flood sends small packets of one kind through a site, from the device that
// they come in by to the device of the far end.
type flood struct {
	site    *site
	frame   []byte
	context []byte // struct xdp_md
	from    space
	pass    *ebpf.Program
	sink    *sink
}

// newFlood has to be closed.
func newFlood(s *site, d direction, f family) (_ *flood, err error) {
	fl := &flood{site: s, from: s.node}
	in, far, device, length := "underlay", s.ovn, "sluice0-ovs", smallFrame
	if d == toFabric {
		in, far, device, length = "sluice0", s.fabric, "underlay", smallFrame+overhead
	}
	if fl.frame, err = frame(d, f); err != nil {
		return nil, err
	}
	index, err := fl.from.ifindex(in)
	if err != nil {
		return nil, err
	}
	fl.context = make([]byte, 24) // data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex
	binary.NativeEndian.PutUint32(fl.context[4:], uint32(len(fl.frame)))
	binary.NativeEndian.PutUint32(fl.context[12:], uint32(index))
	fl.pass, err = ebpf.NewProgram(&ebpf.ProgramSpec{Name: "generate", Type: ebpf.XDP, License: "GPL", Instructions: generator(fl.frame)})
	if err != nil {
		return nil, fmt.Errorf("load the packet generator: %w", err)
	}
	if fl.sink, err = newSink(far, device, length); err != nil {
		return nil, errors.Join(err, fl.pass.Close())
	}
	return fl, nil
}

func (f *flood) close() error { return errors.Join(f.sink.close(), f.pass.Close()) }

const xdpPass, tcShot = 2, 2

// generator passes a packet after writing it anew: the kernel uses its pages
// again, as the node has left them.
func generator(frame []byte) asm.Instructions {
	out := asm.Instructions{
		asm.LoadMem(asm.R2, asm.R1, 0, asm.Word), // data
		asm.LoadMem(asm.R3, asm.R1, 4, asm.Word), // data_end
		asm.Mov.Reg(asm.R4, asm.R2),
		asm.Add.Imm(asm.R4, int32(len(frame))),
		asm.JGT.Reg(asm.R4, asm.R3, "end"),
	}
	at := 0
	for ; at+4 <= len(frame); at += 4 {
		out = append(out, asm.StoreImm(asm.R2, int16(at), int64(int32(binary.NativeEndian.Uint32(frame[at:]))), asm.Word))
	}
	for ; at < len(frame); at++ {
		out = append(out, asm.StoreImm(asm.R2, int16(at), int64(frame[at]), asm.Byte))
	}
	return append(out, asm.Mov.Imm(asm.R0, xdpPass).WithSymbol("end"), asm.Return())
}

// send sends n frames on one CPU and says how many arrived, and how long it took.
func (f *flood) send(n uint32) (arrived uint64, took time.Duration, err error) {
	before, err := f.sink.count()
	if err != nil {
		return 0, 0, err
	}
	err = f.from.do(func() error {
		return alone(lastCPU(), func() error {
			begin := time.Now()
			_, err := f.pass.Run(&ebpf.RunOptions{Data: f.frame, Context: f.context, Repeat: n, BatchSize: batch, Flags: unix.BPF_F_TEST_XDP_LIVE_FRAMES})
			took = time.Since(begin)
			return err
		})
	})
	if err != nil {
		return 0, 0, fmt.Errorf("generate packets (live frames need Linux 5.18): %w", err)
	}
	after, err := f.sink.count()
	return after - before, took, err
}

// sink is a program on a device's ingress that counts the frames of one length
// and drops all.
type sink struct {
	prog *ebpf.Program
	seen *ebpf.Map
	link link.Link
}

func newSink(at space, device string, length int) (_ *sink, err error) {
	s := &sink{}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("sink on %s in %s: %w", device, at.name, err), s.close())
		}
	}()
	index, err := at.ifindex(device)
	if err != nil {
		return nil, err
	}
	s.seen, err = ebpf.NewMap(&ebpf.MapSpec{Name: "seen", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return nil, err
	}
	s.prog, err = ebpf.NewProgram(&ebpf.ProgramSpec{Name: "sink", Type: ebpf.SchedCLS, License: "GPL", Instructions: asm.Instructions{
		asm.LoadMem(asm.R2, asm.R1, 0, asm.Word), // skb->len
		asm.JNE.Imm(asm.R2, int32(length), "drop"),
		asm.LoadMapValue(asm.R1, s.seen.FD(), 0),
		asm.Mov.Imm(asm.R2, 1),
		asm.StoreXAdd(asm.R1, asm.R2, asm.DWord),
		asm.Mov.Imm(asm.R0, tcShot).WithSymbol("drop"),
		asm.Return(),
	}})
	if err != nil {
		return nil, err
	}
	err = at.do(func() (err error) {
		s.link, err = link.AttachTCX(link.TCXOptions{Interface: index, Program: s.prog, Attach: ebpf.AttachTCXIngress})
		return err
	})
	return s, err
}

func (s *sink) count() (n uint64, err error) {
	err = s.seen.Lookup(uint32(0), &n)
	return n, err
}

func (s *sink) close() (err error) {
	if s.link != nil {
		err = s.link.Close()
	}
	if s.prog != nil {
		err = errors.Join(err, s.prog.Close())
	}
	if s.seen != nil {
		err = errors.Join(err, s.seen.Close())
	}
	return err
}
