package control

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// opens counts the files that a process opens, at the raw tracepoint of system calls.
type opens struct {
	counter *ebpf.Map
	program *ebpf.Program
	link    link.Link
}

func countOpens(pid int) (_ *opens, err error) {
	o := &opens{}
	defer func() {
		if err != nil {
			o.close()
			err = fmt.Errorf("count opened files: %w", err)
		}
	}()
	if o.counter, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1}); err != nil {
		return nil, err
	}
	if o.program, err = ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.RawTracepoint, License: "Apache-2.0", Instructions: o.instructions(pid)}); err != nil {
		return nil, err
	}
	o.link, err = link.AttachRawTracepoint(link.RawTracepointOptions{Name: "sys_enter", Program: o.program})
	return o, err
}

// instructions add one when the process pid calls openat or openat2, whose number is the second argument
// of the tracepoint.
func (o *opens) instructions(pid int) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R6, asm.R1, 8, asm.DWord),
		asm.JEq.Imm(asm.R6, unix.SYS_OPENAT, "opens"),
		asm.JNE.Imm(asm.R6, unix.SYS_OPENAT2, "end"),
		asm.FnGetCurrentPidTgid.Call().WithSymbol("opens"),
		asm.RSh.Imm(asm.R0, 32),
		asm.JNE.Imm(asm.R0, int32(pid), "end"),
		asm.StoreImm(asm.RFP, -4, 0, asm.Word),
		asm.LoadMapPtr(asm.R1, o.counter.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "end"),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("end"),
		asm.Return(),
	}
}

func (o *opens) count() (n uint64, err error) {
	err = o.counter.Lookup(uint32(0), &n)
	return n, err
}

func (o *opens) close() {
	var errs []error
	if o.link != nil {
		errs = append(errs, o.link.Close())
	}
	if o.program != nil {
		errs = append(errs, o.program.Close())
	}
	if o.counter != nil {
		errs = append(errs, o.counter.Close())
	}
	_ = errors.Join(errs...) // they end with the process at the latest
}
