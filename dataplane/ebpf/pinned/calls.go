package pinned

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cilium/ebpf"
)

// A program may leave a packet to another one of its object, by a tail call. Both are of one
// load, as is the array of programs between them: whichever program a link has, it calls the one
// that it was loaded with. A link that is updated changes both at once, and no packet runs the
// first half of one load and the second half of another.
//
// The kernel empties an array of programs that no process has open and that has no pin. So it is
// pinned before a link has its program, and until no link has it and each run that has begun with
// it has ended. Its pin carries its number: while programs are replaced there are two. The program
// that is called has one name, and belongs to the pinned caller if it is what that one's array has.

// calledSuffix is what the name of the pin of a called program has after that of its caller.
const calledSuffix = "_called"

// call is what a program calls.
type call struct {
	array   *ebpf.Map
	program *ebpf.Program
}

// callOf names the array of programs in an object, and the program that it has. Without one they are empty.
func callOf(spec *ebpf.CollectionSpec) (array, program string) {
	for name, m := range spec.Maps {
		if m.Type != ebpf.ProgramArray || len(m.Contents) == 0 {
			continue
		}
		if program, ok := m.Contents[0].Value.(string); ok {
			return name, program
		}
	}
	return "", ""
}

// openCall opens what a pinned program calls; nil: nothing, or it is not known.
func openCall(dir, name string, caller *ebpf.Program) (*call, error) {
	info, err := caller.Info()
	if err != nil {
		return nil, err
	}
	ids, _ := info.MapIDs()
	for _, id := range ids {
		path := PagePin(dir, name, id, 0)
		array, err := ebpf.LoadPinnedMap(path, &ebpf.LoadPinOptions{ReadOnly: true})
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("open pin %s: %w", path, err)
		}
		c := &call{array: array}
		path = ProgramPin(dir, name+calledSuffix)
		c.program, err = ebpf.LoadPinnedProgram(path, nil)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			c.close()
			return nil, fmt.Errorf("open pin %s: %w", path, err)
		}
		if !c.complete() {
			c.close()
			return nil, nil
		}
		return c, nil
	}
	return nil, nil
}

// complete tells whether the array has the program: a crash may have left that of another load.
func (c *call) complete() bool {
	if c.program == nil {
		return false
	}
	var has uint32
	info, err := c.program.Info()
	if err != nil || c.array.Lookup(uint32(0), &has) != nil {
		return false
	}
	id, ok := info.ID()
	return ok && id == ebpf.ProgramID(has)
}

// close lets go of both. Nil has nothing.
func (c *call) close() {
	if c == nil {
		return
	}
	c.array.Close()
	if c.program != nil {
		c.program.Close()
	}
}

// holdCall pins the array of what the program calls, before a link has the program.
func (p *Program) holdCall(dir, name string) error {
	if p.call == nil {
		return nil
	}
	id, err := numberOf(p.call.array)
	if err != nil {
		return err
	}
	// A clone, since a pinned map of cilium/ebpf remembers its path.
	array, err := p.call.array.Clone()
	if err != nil {
		return err
	}
	defer array.Close()
	if err := array.Pin(PagePin(dir, name, id, 0)); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("pin what %s calls: %w", name, err)
	}
	return nil
}

// waitForRuns returns when all runs of programs that have begun have ended. The kernel waits so
// long before it returns from a change of an array of maps (maybe_wait_bpf_programs in its
// kernel/bpf/syscall.c).
func waitForRuns() error {
	inner := &ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1}
	outer, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.ArrayOfMaps, KeySize: 4, ValueSize: 4, MaxEntries: 1, InnerMap: inner})
	if err != nil {
		return fmt.Errorf("wait for runs of programs: %w", err)
	}
	defer outer.Close()
	m, err := ebpf.NewMap(inner)
	if err != nil {
		return fmt.Errorf("wait for runs of programs: %w", err)
	}
	defer m.Close()
	if err := outer.Put(uint32(0), m); err != nil {
		return fmt.Errorf("wait for runs of programs: %w", err)
	}
	return nil
}
