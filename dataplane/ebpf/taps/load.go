package taps

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// Config is what Load needs.
type Config struct {
	// Dir is a directory on a bpffs that is for this package alone. It is created, with
	// mode 0700, if its parent is there.
	Dir string
	// Hook is how programs are attached; the zero value picks by the kernel.
	Hook pinned.Hook
	// StaleAfter is how old the proxy's last sign of life may be for requests to go to it.
	StaleAfter time.Duration
	// Log gets what happens to pins and programs.
	Log *slog.Logger
}

// The programs.
const (
	tapIn   = "tap_in"
	proxyIn = "proxy_in"
)

// tapsAt is where tap_in is attached: a tap is Open vSwitch's and the host's, and what
// else is on it goes on working.
func tapsAt(dir string) pinned.Place {
	return pinned.Place{Dir: dir, Program: tapIn, Anywhere: true}
}

// proxyAt is where proxy_in is attached: nothing that comes there is the host's.
func proxyAt(dir string) pinned.Place {
	return pinned.Place{Dir: dir, Program: proxyIn, First: true}
}

// Taps are the loaded programs and maps, and the one writer of both, but for the heartbeat.
type Taps struct {
	*Reader
	log  *slog.Logger
	held *pinned.Held

	mu       sync.Mutex
	programs map[string]*pinned.Program
	// behind are the numbers of each tap.
	behind map[bpfTapKey]map[uint32]struct{}
}

// Load adopts what is pinned in cfg.Dir or makes it, and loads the programs. Programs
// that run already go on undisturbed, or are replaced in place when they differ from
// this build's or from cfg.StaleAfter.
func Load(cfg Config) (*Taps, error) {
	if cfg.StaleAfter <= 0 {
		return nil, fmt.Errorf("the heartbeat cannot be stale after %s", cfg.StaleAfter)
	}
	if err := pinned.LiftMemlock(); err != nil {
		return nil, err
	}
	held, err := pinned.Hold(cfg.Dir)
	if err != nil {
		return nil, err
	}
	t := &Taps{Reader: &Reader{dir: cfg.Dir, hook: cfg.Hook.Pick(), maps: map[string]*ebpf.Map{}}, log: cfg.Log, held: held,
		programs: map[string]*pinned.Program{}, behind: map[bpfTapKey]map[uint32]struct{}{}}
	if err := t.open(cfg.StaleAfter); err != nil {
		t.Close()
		return nil, fmt.Errorf("metadata programs in %s: %w", cfg.Dir, err)
	}
	return t, nil
}

func (t *Taps) open(staleAfter time.Duration) error {
	specs, err := mapSpecs()
	if err != nil {
		return err
	}
	older, err := pinned.Older(t.dir, specs)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		if t.maps[name], err = openMap(filepath.Join(t.dir, name), specs[name]); err != nil {
			return fmt.Errorf("map %s: %w", name, err)
		}
	}
	if err := t.index(); err != nil {
		return err
	}
	tap, proxy, err := t.load(specs, staleAfter)
	if err != nil {
		return err
	}
	// The way back first.
	if err := errors.Join(t.adopt(proxyAt(t.dir), proxy), t.adopt(tapsAt(t.dir), tap)); err != nil {
		return err
	}
	// Only now does no program use them any more.
	for _, name := range older {
		if err := os.Remove(filepath.Join(t.dir, name)); err != nil {
			return fmt.Errorf("remove a map of an older layout: %w", err)
		}
		t.log.Warn("a map of an older layout was replaced by an empty one", "map", name)
	}
	return nil
}

// mapSpecs are the specs of the pinned maps.
func mapSpecs() (map[string]*ebpf.MapSpec, error) {
	spec, err := loadBpf()
	if err != nil {
		return nil, err
	}
	return spec.Maps, nil
}

// openMap adopts a pinned map, with the size that it has, or makes it.
func openMap(path string, spec *ebpf.MapSpec) (*ebpf.Map, error) {
	m, err := ebpf.LoadPinnedMap(path, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return pinned.NewMap(path, spec)
	}
	if err != nil {
		return nil, err
	}
	if err := fits(m, spec); err != nil {
		m.Close()
		return nil, fmt.Errorf("pin %s %w", path, err)
	}
	spec.MaxEntries = m.MaxEntries()
	return m, nil
}

func fits(m *ebpf.Map, spec *ebpf.MapSpec) error {
	if pinned.SameLayout(m, spec) {
		return nil
	}
	return fmt.Errorf("holds a %s of other key and value sizes: %w", m.Type(), reconcile.ErrForeign)
}

// load loads both programs, over the maps that are open.
func (t *Taps) load(specs map[string]*ebpf.MapSpec, staleAfter time.Duration) (tap, proxy *pinned.Program, err error) {
	objects, err := programSpecs(specs, staleAfter)
	if err != nil {
		return nil, nil, err
	}
	programs := map[string]*pinned.Program{}
	for _, name := range []string{tapIn, proxyIn} {
		if programs[name], err = pinned.Load(t.dir, name, objects[name], t.maps); err != nil {
			programs[tapIn].Close()
			return nil, nil, fmt.Errorf("load program %s: %w", name, err)
		}
	}
	return programs[tapIn], programs[proxyIn], nil
}

// programSpecs are the objects of the programs, with their constants and the sizes of maps.
func programSpecs(specs map[string]*ebpf.MapSpec, staleAfter time.Duration) (map[string]*ebpf.CollectionSpec, error) {
	tap, err := loadTapIn()
	if err != nil {
		return nil, err
	}
	proxy, err := loadProxyIn()
	if err != nil {
		return nil, err
	}
	if err := tap.Variables[tapInVarStaleAfter].Set(uint64(staleAfter)); err != nil {
		return nil, fmt.Errorf("set constants: %w", err)
	}
	out := map[string]*ebpf.CollectionSpec{tapIn: tap, proxyIn: proxy}
	for _, spec := range out {
		for name, m := range spec.Maps {
			if s := specs[name]; s != nil {
				m.MaxEntries = s.MaxEntries
			}
		}
	}
	return out, nil
}

// adopt makes a loaded program the one that runs wherever it is attached.
func (t *Taps) adopt(at pinned.Place, loaded *pinned.Program) error {
	now, replaced, err := at.Adopt(t.hook, loaded)
	if err != nil {
		loaded.Close()
		return fmt.Errorf("replace program %s: %w", at.Program, err)
	}
	if replaced {
		t.log.Info("program was replaced in place", "program", at.Program)
	}
	t.programs[at.Program] = now
	return nil
}

// Close lets go of everything. What is pinned stays and goes on steering.
func (t *Taps) Close() error {
	err := t.held.Close()
	for _, p := range t.programs {
		p.Close()
	}
	return errors.Join(t.Reader.Close(), err)
}

// Pins lists what this package pinned in a directory. Names of another form are not
// Sluice's and are not listed.
func Pins(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read pin directory: %w", err)
	}
	specs, err := mapSpecs()
	if err != nil {
		return nil, err
	}
	older, err := pinned.Older(dir, specs)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), pinned.AsideSuffix)
		if specs[name] != nil || slices.Contains(older, name) || pinned.IsOurs(name) {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out, nil
}

// Remove takes the programs off all devices of this namespace and removes the pins. It
// refuses while a daemon has the directory. Taps stay as they are without Sluice; the
// proxy's device drops what comes in.
func Remove(dir string) error {
	pins, err := Pins(dir)
	if err != nil || len(pins) == 0 {
		return err
	}
	lock, err := pinned.Lock(dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	// No request is left without its way back.
	for _, at := range []pinned.Place{tapsAt(dir), proxyAt(dir)} {
		if err := errors.Join(at.UnlinkAll(), at.UnfilterAll()); err != nil {
			return err
		}
	}
	return pinned.RemoveDir(dir, pins)
}

// Layout lists the pinned maps by name.
func Layout() ([]pinned.MapLayout, error) {
	specs, err := mapSpecs()
	if err != nil {
		return nil, err
	}
	return pinned.Layout(specs), nil
}

// Verify loads the programs into the kernel as Load would, attaches none and lets go of
// all.
func Verify() ([]pinned.Verified, error) {
	specs, err := mapSpecs()
	if err != nil {
		return nil, err
	}
	objects, err := programSpecs(specs, time.Second)
	if err != nil {
		return nil, err
	}
	var out []pinned.Verified
	for _, name := range []string{proxyIn, tapIn} {
		v, err := pinned.Verify(objects[name])
		if err != nil {
			return nil, err
		}
		out = append(out, v...)
	}
	return out, nil
}
