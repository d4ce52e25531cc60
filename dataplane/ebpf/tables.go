package ebpf

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

var (
	// ErrNewerLayout is wrapped when a pinned map has a layout that this build
	// does not know: a newer Sluice ran here.
	ErrNewerLayout = errors.New("a newer Sluice wrote this directory")
	// ErrNotBPFFS is wrapped when the directory is on another kind of file system.
	ErrNotBPFFS = errors.New("not a bpf file system")
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

// checkBPFFS makes the directory, whose parent has to be on a bpffs.
func checkBPFFS(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("create pin directory: %w", err)
	}
	return onBPFFS(dir)
}

func onBPFFS(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("statfs %s: %w", dir, err)
	}
	if st.Type != unix.BPF_FS_MAGIC {
		return fmt.Errorf("%s: %w: mount one with `mount -t bpf bpf /sys/fs/bpf`", dir, ErrNotBPFFS)
	}
	return nil
}

// splitVersion cuts hosts_v1 into hosts and 1.
func splitVersion(name string) (base string, version int, ok bool) {
	i := strings.LastIndex(name, "_v")
	if i <= 0 {
		return "", 0, false
	}
	version, err := strconv.Atoi(name[i+2:])
	return name[:i], version, err == nil && version >= 0
}

// mapSpecs are the specs of the pinned maps with the sizes applied.
func mapSpecs(limits Limits) (map[string]*ebpf.MapSpec, error) {
	spec, err := loadBpf()
	if err != nil {
		return nil, err
	}
	out := map[string]*ebpf.MapSpec{}
	for name, m := range spec.Maps {
		if _, _, ok := splitVersion(name); ok {
			out[name] = m
		}
	}
	for name, n := range limits.sizes() {
		out[name].MaxEntries = n
	}
	return out, nil
}

// retired are maps of older builds that no map of this build takes the place of.
var retired = []string{"host_front_v1"}

// outdated tells whether a pin is a map of an older layout.
func outdated(pin string, specs map[string]*ebpf.MapSpec) bool {
	base, v, ok := splitVersion(pin)
	for name := range specs {
		b, known, _ := splitVersion(name)
		if ok && b == base && v < known {
			return true
		}
	}
	return slices.Contains(retired, pin)
}

// refilled are the maps, without their versions, that a start fills from others
// or that may begin empty: of them an older layout is taken away. A new layout of
// any other map has all maps made anew: see Dataplane.Staged.
var refilled = []string{"vrf_front", "gate_front", "vtep_front", "route_front", "prefix_cache", "prefix_gen",
	"asked", "buckets", "samples", "trace"}

// continued are maps whose rows of the version before mean the same to this build,
// while its own would mislead the build of that version: they go on under the new
// name, which that build refuses.
var continued = map[string]string{bpfMapVrfsV2: "vrfs_v1"}

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
	known := map[string]int{}
	for name := range specs {
		base, v, _ := splitVersion(name)
		known[base] = max(known[base], v)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read pin directory: %w", err)
	}
	for _, e := range entries {
		base, v, ok := splitVersion(e.Name())
		if ok && known[base] != 0 && v > known[base] {
			return nil, fmt.Errorf("%s has layout %d, known is %d: %w; start that version, or run `sluicectl cleanup` first",
				filepath.Join(dir, e.Name()), v, known[base], ErrNewerLayout)
		}
		if ok && v < known[base] && !slices.Contains(refilled, base) && !isContinued(e.Name()) {
			older = append(older, e.Name())
		}
	}
	return older, nil
}

// rebuildSuffix marks what is not complete yet. (A bpffs takes no dots in names.)
const rebuildSuffix = "_new"

// openTables adopts the pinned maps and makes those that are missing. Maps whose
// size changed come back in rebuilt: filled, pinned under a temporary name, and
// to be published once the programs use them.
func openTables(dir string, specs map[string]*ebpf.MapSpec) (t tables, rebuilt []string, err error) {
	t = tables{}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		m, isNew, err := openTable(dir, name, specs[name])
		if err != nil {
			return nil, nil, fmt.Errorf("map %s: %w", name, err)
		}
		t[name] = m
		if isNew {
			rebuilt = append(rebuilt, name)
		}
	}
	return t, rebuilt, nil
}

func openTable(dir, name string, spec *ebpf.MapSpec) (m *ebpf.Map, rebuilt bool, err error) {
	path := filepath.Join(dir, name)
	// What a crash in the middle of a rebuild left behind is worth nothing.
	if err := os.Remove(path + rebuildSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false, err
	}
	old, err := ebpf.LoadPinnedMap(pinOf(dir, name), nil)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		m, err := newPinned(path, spec)
		return m, false, err
	case err != nil:
		return nil, false, err
	case spec.Compatible(old) == nil:
		return old, false, nil
	}
	defer old.Close()
	if old.Type() != spec.Type || old.KeySize() != spec.KeySize || old.ValueSize() != spec.ValueSize {
		return nil, false, fmt.Errorf("pin %s holds a %s of other key and value sizes: %w", path, old.Type(), reconcile.ErrForeign)
	}
	m, err = newPinned(path+rebuildSuffix, spec)
	if err != nil {
		return nil, false, err
	}
	if name == bpfMapRouteFrontV1 {
		return m, true, nil // rows of zeros: everything is looked up in the maps behind, until they are filled
	}
	if err := copyRows(m, old); err != nil {
		m.Close()
		return nil, false, fmt.Errorf("copy %d rows into the size %d: %w", old.MaxEntries(), spec.MaxEntries, err)
	}
	return m, true, nil
}

func newPinned(path string, spec *ebpf.MapSpec) (*ebpf.Map, error) {
	m, err := ebpf.NewMap(spec)
	if err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	if err := m.Pin(path); err != nil {
		m.Close()
		return nil, fmt.Errorf("pin: %w", err)
	}
	return m, nil
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

// publish gives rebuilt maps their names, and removes layouts that are replaced.
func publish(dir string, rebuilt []string, specs map[string]*ebpf.MapSpec) error {
	for _, name := range rebuilt {
		path := filepath.Join(dir, name)
		if err := os.Rename(path+rebuildSuffix, path); err != nil {
			return fmt.Errorf("publish map: %w", err)
		}
	}
	for name := range continued {
		path := filepath.Join(dir, name)
		if was := pinOf(dir, name); was != path {
			if err := os.Rename(was, path); err != nil {
				return fmt.Errorf("rename a map of the version before: %w", err)
			}
		}
	}
	return removeOutdated(dir, specs)
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
