package pinned

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

const (
	// constantsSection holds the constants of a program, and is a map of its own.
	constantsSection = ".rodata"

	programPrefix   = "prog_"
	constantsPrefix = "const_"
)

// Program is a loaded program with the map of its constants, and the program that it calls. These
// are pinned beside the program: opening maps and programs by their numbers takes CAP_SYS_ADMIN,
// which the daemon does not have.
type Program struct {
	*ebpf.Program
	constants *ebpf.Map // nil: it has none, or they are not known
	call      *call     // as constants
}

// Close lets go of all. Nil has nothing.
func (p *Program) Close() {
	if p == nil {
		return
	}
	p.Program.Close()
	if p.constants != nil {
		p.constants.Close()
	}
	p.call.close()
}

// ID is the kernel's number for the program. Nil has none.
func (p *Program) ID() (ebpf.ProgramID, bool) {
	if p == nil {
		return 0, false
	}
	info, err := p.Info()
	if err != nil {
		return 0, false
	}
	return info.ID()
}

// ProgramPin is where a program is pinned.
func ProgramPin(dir, name string) string { return filepath.Join(dir, programPrefix+name) }

func constantsPin(dir, name string) string { return filepath.Join(dir, constantsPrefix+name) }

// Objects adds the descriptors of the program, its constants and what it calls, by the names of
// their pins. Nil has none.
func (p *Program) Objects(name string, to map[string]int) {
	if p == nil {
		return
	}
	to[programPrefix+name] = p.FD()
	if p.constants != nil {
		to[constantsPrefix+name] = p.constants.FD()
	}
	if p.call == nil {
		return
	}
	to[programPrefix+name+calledSuffix] = p.call.program.FD()
	if id, err := numberOf(p.call.array); err == nil {
		to[filepath.Base(PagePin("", name, id, 0))] = p.call.array.FD()
	}
}

// Open opens a program's pins; nil if there is none.
func Open(dir, name string) (*Program, error) {
	path := ProgramPin(dir, name)
	prog, err := ebpf.LoadPinnedProgram(path, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open pin %s: %w", path, err)
	}
	p := &Program{Program: prog}
	if err := checkOurs(prog, name); err != nil {
		p.Close()
		return nil, fmt.Errorf("pin %s: %w", path, err)
	}
	path = constantsPin(dir, name)
	p.constants, err = ebpf.LoadPinnedMap(path, &ebpf.LoadPinOptions{ReadOnly: true})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.Close()
		return nil, fmt.Errorf("open pin %s: %w", path, err)
	}
	if p.call, err = openCall(dir, name, prog); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// checkOurs refuses a pin that holds some other program.
func checkOurs(prog *ebpf.Program, name string) error {
	info, err := prog.Info()
	if err != nil {
		return err
	}
	if prog.Type() != ebpf.SchedCLS || info.Name != name {
		return fmt.Errorf("holds program %q of type %s: %w", info.Name, prog.Type(), reconcile.ErrForeign)
	}
	return nil
}

// allMaps gives the ids, in order, of the maps of the program and of what it calls, without that
// of the array between them.
func (p *Program) allMaps() (ids []ebpf.MapID, ok bool) {
	info, err := p.Info()
	if err != nil {
		return nil, false
	}
	if ids, ok = info.MapIDs(); !ok {
		return nil, false
	}
	if p.call != nil {
		array, err := numberOf(p.call.array)
		called, infoErr := p.call.program.Info()
		if err != nil || infoErr != nil {
			return nil, false
		}
		of, ok := called.MapIDs()
		if !ok {
			return nil, false
		}
		ids = slices.DeleteFunc(append(ids, of...), func(id ebpf.MapID) bool { return id == array })
	}
	slices.Sort(ids)
	return slices.Compact(ids), true
}

// maps is allMaps without that of the constants, and their content. A crash may have left the
// constants of another program.
func (p *Program) maps() (ids []ebpf.MapID, constants []byte, ok bool) {
	if ids, ok = p.allMaps(); !ok || p.constants == nil {
		return ids, nil, ok
	}
	of, err := p.constants.Info()
	if err != nil {
		return nil, nil, false
	}
	id, _ := of.ID()
	at := slices.Index(ids, id)
	if at < 0 || p.constants.Lookup(uint32(0), &constants) != nil {
		return nil, nil, false
	}
	return slices.Delete(ids, at, at+1), constants, true
}

// Uses tells whether all maps of the program, but for its constants, are among these.
func (p *Program) Uses(maps map[string]*ebpf.Map) bool {
	used, _, ok := p.maps()
	if !ok {
		return false
	}
	known := map[ebpf.MapID]bool{}
	for _, m := range maps {
		info, err := m.Info()
		if err != nil {
			return false
		}
		id, _ := info.ID()
		known[id] = true
	}
	return !slices.ContainsFunc(used, func(id ebpf.MapID) bool { return !known[id] })
}

// Constants are the program's; false: they are not known. Without any they are empty.
func (p *Program) Constants() ([]byte, bool) {
	_, constants, ok := p.maps()
	return constants, ok
}

// MapsOf gives the ids of the maps that a pinned program uses; none if it is not there.
// Those of its constants are among them where a crash has left others'.
func MapsOf(dir, name string) ([]ebpf.MapID, error) {
	p, err := Open(dir, name)
	if err != nil || p == nil {
		return nil, err
	}
	defer p.Close()
	if ids, _, ok := p.maps(); ok {
		return ids, nil
	}
	ids, _ := p.allMaps()
	return ids, nil
}

// PinAs pins program, constants and what it calls under names that may be taken.
func (p *Program) PinAs(dir, name string) error {
	if p.constants != nil {
		constants, err := p.constants.Clone()
		if err != nil {
			return err
		}
		defer constants.Close()
		if err := Over(constants, constantsPin(dir, name)); err != nil {
			return fmt.Errorf("constants: %w", err)
		}
	}
	if p.call != nil {
		if err := pinProgram(p.call.program, dir, name+calledSuffix); err != nil {
			return fmt.Errorf("called program: %w", err)
		}
	}
	return pinProgram(p.Program, dir, name)
}

func pinProgram(p *ebpf.Program, dir, name string) error {
	// A clone, since a pinned program of cilium/ebpf remembers its path.
	prog, err := p.Clone()
	if err != nil {
		return err
	}
	defer prog.Close()
	return Over(prog, ProgramPin(dir, name))
}

// Load loads a program with these maps, and its constants if it has some. A pinned program that is the
// same is opened instead: the verifier takes a second for a large one, and has passed it.
func Load(dir, name string, spec *ebpf.CollectionSpec, maps map[string]*ebpf.Map) (*Program, error) {
	if p := Current(dir, name, spec, maps); p != nil {
		return p, nil
	}
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: maps})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	p := &Program{Program: c.DetachProgram(name), constants: c.DetachMap(constantsSection)}
	if array, called := callOf(spec); called != "" {
		p.call = &call{c.DetachMap(array), c.DetachProgram(called)}
	}
	return p, nil
}
