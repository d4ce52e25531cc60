package ebpf

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/cilium/ebpf"
)

// constantsSection holds the constants of a program, and is a map of its own.
const constantsSection = ".rodata"

// running is a program with the map of its constants. That map is pinned beside
// the program: opening maps and programs by their numbers takes CAP_SYS_ADMIN,
// which the daemon does not have.
type running struct {
	prog      *ebpf.Program
	constants *ebpf.Map // nil: not known
}

func (r *running) close() {
	if r == nil {
		return
	}
	r.prog.Close()
	if r.constants != nil {
		r.constants.Close()
	}
}

func (r *running) id() (ebpf.ProgramID, bool) {
	info, err := r.prog.Info()
	if err != nil {
		return 0, false
	}
	return info.ID()
}

func programPin(dir string, p Program) string   { return filepath.Join(dir, "prog_"+p.String()) }
func constantsPin(dir string, p Program) string { return filepath.Join(dir, "const_"+p.String()) }

// openRunning opens a program's pins; nil if there is none.
func openRunning(dir string, p Program) (*running, error) {
	path := programPin(dir, p)
	prog, err := ebpf.LoadPinnedProgram(path, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open pin %s: %w", path, err)
	}
	r := &running{prog: prog}
	if err := checkOurs(prog, p); err != nil {
		r.close()
		return nil, fmt.Errorf("pin %s: %w", path, err)
	}
	path = constantsPin(dir, p)
	r.constants, err = ebpf.LoadPinnedMap(path, &ebpf.LoadPinOptions{ReadOnly: true})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.close()
		return nil, fmt.Errorf("open pin %s: %w", path, err)
	}
	return r, nil
}

// maps gives the ids of the program's other maps, and the content of its
// constants. A crash may have left the constants of another program.
func (r *running) maps() (ids []ebpf.MapID, constants []byte, ok bool) {
	if r.constants == nil {
		return nil, nil, false
	}
	info, err := r.prog.Info()
	if err != nil {
		return nil, nil, false
	}
	if ids, ok = info.MapIDs(); !ok {
		return nil, nil, false
	}
	of, err := r.constants.Info()
	if err != nil {
		return nil, nil, false
	}
	id, _ := of.ID()
	at := slices.Index(ids, id)
	if at < 0 || r.constants.Lookup(uint32(0), &constants) != nil {
		return nil, nil, false
	}
	ids = slices.Delete(ids, at, at+1)
	slices.Sort(ids)
	return ids, constants, true
}

// same tells whether two loaded programs do the same: equal instructions (their
// tag), the same maps, equal constants.
func (r *running) same(other *running) bool {
	a, errA := r.prog.Info()
	b, errB := other.prog.Info()
	if errA != nil || errB != nil || a.Tag != b.Tag {
		return false
	}
	mapsA, constA, okA := r.maps()
	mapsB, constB, okB := other.maps()
	return okA && okB && slices.Equal(mapsA, mapsB) && bytes.Equal(constA, constB)
}

// pin pins program and constants under names that may be taken.
func (r *running) pin(dir string, p Program) error {
	constants, err := r.constants.Clone()
	if err != nil {
		return err
	}
	defer constants.Close()
	if err := pinOver(constants, constantsPin(dir, p)); err != nil {
		return fmt.Errorf("constants: %w", err)
	}
	// A clone, since a pinned program of cilium/ebpf remembers its path.
	prog, err := r.prog.Clone()
	if err != nil {
		return err
	}
	defer prog.Close()
	return pinOver(prog, programPin(dir, p))
}

// pinOver pins under a name that may be taken: aside, then one rename.
func pinOver(object interface{ Pin(string) error }, path string) error {
	aside := path + rebuildSuffix
	if err := os.Remove(aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := object.Pin(aside); err != nil {
		return fmt.Errorf("pin %s: %w", aside, err)
	}
	if err := os.Rename(aside, path); err != nil {
		return fmt.Errorf("publish pin: %w", err)
	}
	return nil
}

// constantsOf is the content that a program's constants will have.
func constantsOf(spec *ebpf.CollectionSpec) []byte {
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
