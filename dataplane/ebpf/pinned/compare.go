package pinned

import (
	"bytes"
	"io"
	"slices"

	"github.com/cilium/ebpf"
)

// Same tells whether two loaded programs do the same: equal instructions (their
// tag), the same maps, equal constants, and so of what they call. Of constants and of a call that
// are not known the map is one that the other program has not.
func (p *Program) Same(other *Program) bool {
	if !sameTag(p.Program, other.Program) || (p.call == nil) != (other.call == nil) {
		return false
	}
	if p.call != nil && !sameTag(p.call.program, other.call.program) {
		return false
	}
	mapsA, constA, okA := p.maps()
	mapsB, constB, okB := other.maps()
	return okA && okB && slices.Equal(mapsA, mapsB) && bytes.Equal(constA, constB)
}

func sameTag(one, other *ebpf.Program) bool {
	a, errA := one.Info()
	b, errB := other.Info()
	return errA == nil && errB == nil && a.Tag == b.Tag
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

// isBuiltFrom tells whether the program has the instructions of a spec, and so of what it calls.
func (p *Program) isBuiltFrom(spec *ebpf.CollectionSpec, name string) (bool, error) {
	_, called := callOf(spec)
	if (called != "") != (p.call != nil) {
		return false, nil
	}
	built, err := hasInstructions(p.Program, spec.Programs[name])
	if err != nil || !built || called == "" {
		return built, err
	}
	return hasInstructions(p.call.program, spec.Programs[called])
}

// hasInstructions tells whether a program has the instructions of a spec. A
// program's tag covers them as they are loaded, with the offsets of calls, but
// not which maps they refer to.
func hasInstructions(p *ebpf.Program, spec *ebpf.ProgramSpec) (bool, error) {
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
	want, ok, err := mapIDs(spec, maps)
	if err != nil || !ok || !slices.Equal(ids, want) {
		return false, err
	}
	return p.isBuiltFrom(spec, name)
}

// mapIDs gives the ids, in order, of the maps that the programs of an object refer to, without
// their constants and the array of programs. ok is false if one of them is not among maps.
func mapIDs(spec *ebpf.CollectionSpec, maps map[string]*ebpf.Map) (ids []ebpf.MapID, ok bool, err error) {
	array, _ := callOf(spec)
	for _, p := range spec.Programs {
		for i := range p.Instructions {
			ins := &p.Instructions[i]
			name := ins.Reference()
			if !ins.IsLoadFromMap() || name == constantsSection || name == array {
				continue
			}
			m := maps[name]
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
	built, err := now.isBuiltFrom(spec, name)
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
