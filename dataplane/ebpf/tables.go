package ebpf

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

var (
	// ErrNewerLayout is wrapped when a pinned map has a layout that this build
	// does not know: a newer Sluice ran here.
	ErrNewerLayout = pinned.ErrNewerLayout
	// ErrNotBPFFS is wrapped when the directory is on another kind of file system.
	ErrNotBPFFS = pinned.ErrNotBPFFS
	// ErrNotLoaded is wrapped when a directory holds no data plane.
	ErrNotLoaded = errors.New("no pinned data plane")
)

// tables are the pinned maps by name.
type tables map[string]*ebpf.Map

func (t tables) close() {
	for _, m := range t {
		m.Close()
	}
}

// clone opens all of them once more, for who outlasts the others.
func (t tables) clone() (tables, error) {
	out := tables{}
	for name, m := range t {
		c, err := m.Clone()
		if err != nil {
			out.close()
			return nil, fmt.Errorf("map %s: %w", name, err)
		}
		out[name] = c
	}
	return out, nil
}

// mapSpecs are the specs of the pinned maps with the sizes applied.
func mapSpecs(limits Limits) (map[string]*ebpf.MapSpec, error) {
	spec, err := loadBpf()
	if err != nil {
		return nil, err
	}
	out := map[string]*ebpf.MapSpec{}
	for name, m := range spec.Maps {
		if _, _, ok := pinned.SplitVersion(name); ok {
			out[name] = m
		}
	}
	for name, n := range limits.sizes() {
		out[name].MaxEntries = n
	}
	return out, nil
}

// outdated tells whether a pin is a map of an older layout.
func outdated(pin string, specs map[string]*ebpf.MapSpec) bool {
	base, v, ok := pinned.SplitVersion(pin)
	for name := range specs {
		b, known, _ := pinned.SplitVersion(name)
		if ok && b == base && v < known {
			return true
		}
	}
	return false
}

// refilled are the maps, without their versions, that a start fills from others
// or that may begin empty: of them an older layout is taken away. A new layout of
// any other map has all maps made anew: see Dataplane.Staged.
var refilled = []string{"vrf_front", "gate_front", "vtep_front", "route_front", "prefix_cache", "prefix_gen",
	"asked", "buckets", "samples", "trace"}

// continued are maps whose rows of the version before mean the same to this build,
// while its own would mislead the build of that version: they go on under the new
// name, which that build refuses. By name, the name before. None does now.
var continued = map[string]string{}

// pinOf is where a map is pinned: by the name of the version before if it is
// continued, and not yet by its own.
func pinOf(dir, name string) string {
	path := filepath.Join(dir, name)
	before, ok := continued[name]
	if !ok {
		return path
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return path
	}
	if _, err := os.Lstat(filepath.Join(dir, before)); err != nil {
		return path
	}
	return filepath.Join(dir, before)
}

// fromBefore tells whether a map is pinned by the name of the version before.
func fromBefore(dir, name string) bool { return pinOf(dir, name) != filepath.Join(dir, name) }

// isContinued tells whether a pin is one of the version before. Beside its own it
// is what a crash left between the change and the removal of what was replaced.
func isContinued(pin string) bool {
	for _, before := range continued {
		if pin == before {
			return true
		}
	}
	return false
}

// checkLayout refuses a directory that a newer build wrote: what runs goes on as
// it is. It names the maps of an older layout whose rows this build cannot use.
func checkLayout(dir string, specs map[string]*ebpf.MapSpec) (older []string, err error) {
	older, err = pinned.Older(dir, specs)
	return slices.DeleteFunc(older, func(name string) bool {
		base, _, _ := pinned.SplitVersion(name)
		return slices.Contains(refilled, base) || isContinued(name)
	}), err
}

// opening is what openTables has found and made.
type opening struct {
	tables tables
	// rebuilt are maps whose size changed: filled, pinned under a temporary name, and to be
	// published when programs that use them are loaded.
	rebuilt []string
	// flows are to be copied again until all programs use these maps.
	flows flowSources
}

func (o *opening) close() {
	o.tables.close()
	o.flows.close()
}

// openTables adopts the pinned maps and makes those that are missing.
func openTables(dir string, specs map[string]*ebpf.MapSpec, programs []Program) (*opening, error) {
	o := &opening{tables: tables{}, flows: flowSources{}}
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		if err := o.open(dir, name, specs[name]); err != nil {
			o.close()
			return nil, fmt.Errorf("map %s: %w", name, err)
		}
	}
	err := o.flows.addRunning(dir, programs, specs, o.tables)
	if err == nil {
		err = o.flows.copyTo(o.tables, nil)
	}
	if err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

func (o *opening) open(dir, name string, spec *ebpf.MapSpec) (err error) {
	path := filepath.Join(dir, name)
	// What a crash before the publication left behind is worth nothing: no program has used it.
	if err := os.Remove(path + pinned.AsideSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	old, err := ebpf.LoadPinnedMap(pinOf(dir, name), nil)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		o.tables[name], err = pinned.NewMap(path, spec)
		return err
	case err != nil:
		return err
	case spec.Compatible(old) == nil:
		o.tables[name] = old
		return nil
	case !pinned.SameLayout(old, spec):
		old.Close()
		return fmt.Errorf("pin %s holds a %s of other key and value sizes: %w", path, old.Type(), reconcile.ErrForeign)
	}
	if o.tables[name], err = pinned.NewMap(path+pinned.AsideSuffix, spec); err != nil {
		old.Close()
		return err
	}
	o.rebuilt = append(o.rebuilt, name)
	if flowCopies[name] != nil {
		o.flows[name] = append(o.flows[name], old)
		return nil
	}
	defer old.Close()
	if name == bpfMapRouteFrontV1 {
		return nil // rows of zeros: everything is looked up in the maps behind, until they are filled
	}
	if err := copyRows(o.tables[name], old); err != nil {
		return fmt.Errorf("copy %d rows into the size %d: %w", old.MaxEntries(), spec.MaxEntries, err)
	}
	return nil
}

// copyRows copies what fits of an array, and everything of any other map.
func copyRows(to, from *ebpf.Map) error {
	switch from.Type() {
	case ebpf.RingBuf:
		return nil // samples that nobody has read yet
	case ebpf.PerCPUArray:
		return copyPerCPU(to, from)
	}
	var key, value []byte
	it := from.Iterate()
	for it.Next(&key, &value) {
		if from.Type() == ebpf.Array && nativeUint32(key) >= to.MaxEntries() {
			if slices.ContainsFunc(value, func(b byte) bool { return b != 0 }) {
				return errors.New("rows in use are beyond the new size")
			}
			continue
		}
		if err := to.Put(key, value); err != nil {
			return err
		}
	}
	return it.Err()
}

func copyPerCPU(to, from *ebpf.Map) error {
	for row := range min(to.MaxEntries(), from.MaxEntries()) {
		var values [][]byte
		if err := from.Lookup(row, &values); err != nil {
			return err
		}
		if err := to.Put(row, values); err != nil {
			return err
		}
	}
	return nil
}

// publish pins maps by their names, whatever has these, and wherever a pin of before has gone.
func (t tables) publish(dir string, names []string) error {
	for _, name := range names {
		// A clone, since a pinned map of cilium/ebpf remembers its path.
		m, err := t[name].Clone()
		if err != nil {
			return fmt.Errorf("map %s: %w", name, err)
		}
		err = pinned.Over(m, filepath.Join(dir, name))
		m.Close()
		if err != nil {
			return fmt.Errorf("map %s: %w", name, err)
		}
	}
	return nil
}

// nameContinued gives maps of the version before the names of this one.
func nameContinued(dir string) error {
	for name := range continued {
		if !fromBefore(dir, name) {
			continue
		}
		if err := os.Rename(pinOf(dir, name), filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("rename a map of the version before: %w", err)
		}
	}
	return nil
}

// removeOutdated removes layouts that are replaced.
func removeOutdated(dir string, specs map[string]*ebpf.MapSpec) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read pin directory: %w", err)
	}
	for _, e := range entries {
		if !outdated(e.Name(), specs) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("remove a map of an older layout: %w", err)
		}
	}
	return nil
}

// removeStalePages removes the pages of arrays of maps, and the arrays of called programs, that
// others have replaced.
func (d *Dataplane) removeStalePages() error {
	programs := map[string]*pinned.Program{}
	for p, program := range d.programs {
		programs[p.String()] = program
	}
	return pinned.RemoveStalePages(d.pins(), d.tables, programs)
}
