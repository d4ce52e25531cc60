package pinned

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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

// Program is a loaded program with the map of its constants. That map is pinned beside
// the program: opening maps and programs by their numbers takes CAP_SYS_ADMIN,
// which the daemon does not have.
type Program struct {
	*ebpf.Program
	constants *ebpf.Map // nil: it has none, or they are not known
}

// Close lets go of both. Nil has nothing.
func (p *Program) Close() {
	if p == nil {
		return
	}
	p.Program.Close()
	if p.constants != nil {
		p.constants.Close()
	}
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

// Objects adds the descriptors of the program and its constants, by the names of their pins. Nil
// has none.
func (p *Program) Objects(name string, to map[string]int) {
	if p == nil {
		return
	}
	to[programPrefix+name] = p.FD()
	if p.constants != nil {
		to[constantsPrefix+name] = p.constants.FD()
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

// maps gives the ids of the program's maps without that of its constants, and their
// content. A crash may have left the constants of another program.
func (p *Program) maps() (ids []ebpf.MapID, constants []byte, ok bool) {
	info, err := p.Info()
	if err != nil {
		return nil, nil, false
	}
	if ids, ok = info.MapIDs(); !ok {
		return nil, nil, false
	}
	slices.Sort(ids)
	if p.constants == nil {
		return ids, nil, true
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
	info, err := p.Info()
	if err != nil {
		return nil, err
	}
	ids, _ := info.MapIDs()
	return ids, nil
}

// Same tells whether two loaded programs do the same: equal instructions (their
// tag), the same maps, equal constants. Of constants that are not known the map is one
// that the other program has not.
func (p *Program) Same(other *Program) bool {
	a, errA := p.Info()
	b, errB := other.Info()
	if errA != nil || errB != nil || a.Tag != b.Tag {
		return false
	}
	mapsA, constA, okA := p.maps()
	mapsB, constB, okB := other.maps()
	return okA && okB && slices.Equal(mapsA, mapsB) && bytes.Equal(constA, constB)
}

// PinAs pins program and constants under names that may be taken.
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
	// A clone, since a pinned program of cilium/ebpf remembers its path.
	prog, err := p.Clone()
	if err != nil {
		return err
	}
	defer prog.Close()
	return Over(prog, ProgramPin(dir, name))
}

// ConstantsOf is the content that a program's constants will have.
func ConstantsOf(spec *ebpf.CollectionSpec) []byte {
	m := spec.Maps[constantsSection]
	if m == nil || len(m.Contents) != 1 {
		return nil
	}
	b, _ := m.Contents[0].Value.([]byte)
	b = slices.Clone(b)
	for _, v := range spec.Variables {
		if v.SectionName == constantsSection && int(v.Offset)+len(v.Value) <= len(b) {
			copy(b[v.Offset:], v.Value)
		}
	}
	return b
}

// IsBuiltFrom tells whether the program has the instructions of a spec. A
// program's tag covers them as they are loaded, with the offsets of calls, but
// not which maps they refer to.
func (p *Program) IsBuiltFrom(spec *ebpf.ProgramSpec) (bool, error) {
	loaded, err := p.Info()
	if err != nil {
		return false, err
	}
	spec = spec.Copy()
	for i := range spec.Instructions {
		ins := &spec.Instructions[i]
		if ins.IsLoadFromMap() && ins.AssociateMap(anyMap{}) != nil {
			return false, nil
		}
	}
	// Marshalling writes the offsets into the instructions.
	return spec.Instructions.Marshal(io.Discard, spec.ByteOrder) == nil && spec.Compatible(loaded) == nil, nil
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
	return &Program{c.DetachProgram(name), c.DetachMap(constantsSection)}, nil
}

// Current opens the pinned program if loading spec with these maps would make the same one: equal
// instructions, maps and constants. Otherwise it returns nil, also if that cannot be told.
func Current(dir, name string, spec *ebpf.CollectionSpec, maps map[string]*ebpf.Map) *Program {
	p, err := Open(dir, name)
	if err != nil || p == nil {
		return nil
	}
	if same, err := p.isOf(spec, name, maps); err != nil || !same {
		p.Close()
		return nil
	}
	return p
}

func (p *Program) isOf(spec *ebpf.CollectionSpec, name string, maps map[string]*ebpf.Map) (bool, error) {
	ids, constants, ok := p.maps()
	if !ok || !bytes.Equal(constants, ConstantsOf(spec)) {
		return false, nil
	}
	want, ok, err := mapIDs(spec.Programs[name], maps)
	if err != nil || !ok || !slices.Equal(ids, want) {
		return false, err
	}
	return p.IsBuiltFrom(spec.Programs[name])
}

// mapIDs gives the ids, in order, of the maps that a program refers to, without its constants.
// ok is false if one of them is not among maps.
func mapIDs(spec *ebpf.ProgramSpec, maps map[string]*ebpf.Map) (ids []ebpf.MapID, ok bool, err error) {
	for i := range spec.Instructions {
		ins := &spec.Instructions[i]
		if !ins.IsLoadFromMap() || ins.Reference() == constantsSection {
			continue
		}
		m := maps[ins.Reference()]
		if m == nil {
			return nil, false, nil
		}
		info, err := m.Info()
		if err != nil {
			return nil, false, err
		}
		id, ok := info.ID()
		if !ok {
			return nil, false, nil
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return slices.Compact(ids), true, nil
}

// anyMap stands for a map that need not be open.
type anyMap struct{}

func (anyMap) FD() int { return 0 }

// Change compares the pinned program with what loading spec would make, by its tag, its
// constants and its maps. action is empty if nothing would change. It changes nothing.
func Change(dir, name string, spec *ebpf.CollectionSpec, mapsRemade bool) (action, actual string, err error) {
	now, err := Open(dir, name)
	if err != nil || now == nil {
		return "add", "", err
	}
	defer now.Close()
	built, err := now.IsBuiltFrom(spec.Programs[name])
	if err != nil {
		return "", "", err
	}
	_, constants, ok := now.maps()
	switch {
	case !ok:
		return "change", "cannot be compared", nil
	case !built:
		return "change", "of another build", nil
	case !bytes.Equal(constants, ConstantsOf(spec)):
		return "change", "with other constants", nil
	case mapsRemade:
		return "change", "with other maps", nil
	}
	return "", "", nil
}
