package ebpf

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// A build with another layout of a map cannot use the rows that are pinned, nor
// can the programs that run use its maps. It makes all maps anew, since rows of one
// refer to rows of others, and fills them while the programs that run go on with
// theirs, which nobody writes any more. Promote changes from the one to the other.
//
// The new maps are pinned only then. A process that ends before leaves pages of
// theirs behind, which the next start removes; one that ends within Promote leaves a map of the older layout, since
// those go last, and the next start begins anew beside whatever programs run.

// stage is open for a directory of an older layout.
func (d *Dataplane) stage(cfg Config, limits Limits) error {
	d.log.Warn("pinned maps have an older layout; they stay in use until the new ones are filled", "maps", d.older)
	d.tables = tables{}
	for name, spec := range d.specs {
		m, err := ebpf.NewMap(spec)
		if err != nil {
			return fmt.Errorf("map %s: create: %w", name, err)
		}
		d.tables[name] = m
	}
	d.later, d.node = &later{}, cfg.Node
	if err := d.openOlder(); err != nil {
		return err
	}
	d.noteUsed()
	d.store = d.newStore(limits, cfg)
	if err := d.store.repair(); err != nil {
		return err
	}
	had, err := hadVIPs(d.dir)
	if had {
		d.store.followOlder()
	}
	return err
}

// hadVIPs tells whether maps of an older layout have VIPs.
func hadVIPs(dir string) (bool, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "vips_v*"))
	if err != nil {
		return false, err
	}
	for _, path := range paths {
		m, err := ebpf.LoadPinnedMap(path, &ebpf.LoadPinOptions{ReadOnly: true})
		if err != nil {
			return false, fmt.Errorf("map %s: open: %w", path, err)
		}
		key, err := m.NextKeyBytes(nil)
		_ = m.Close()
		if err != nil || key != nil {
			return key != nil, err
		}
	}
	return false, nil
}

// Staged tells whether the rows that are written wait for Promote: packets are
// forwarded by programs and maps of an older layout, which nothing changes.
func (d *Dataplane) Staged() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.older) > 0
}

// Promote makes the maps as they are filled now, and the programs of this build,
// what forwards packets, wherever an older program is attached: each link is
// updated in place. Then it removes what is pinned of the older layout. Call it
// when all tables have been written. Where nothing is staged it does nothing.
func (d *Dataplane) Promote() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.older) == 0 {
		return nil
	}
	if d.later != nil {
		return fmt.Errorf("programs of this build: %w to be loaded", reconcile.ErrNotReady)
	}
	if err := d.promote(); err != nil {
		return fmt.Errorf("change to maps of another layout in %s: %w", d.dir, err)
	}
	d.log.Info("programs and maps of another layout took over", "removed", d.older)
	d.older = nil
	d.store.follows.Store(false)
	return nil
}

func (d *Dataplane) promote() error {
	// Backwards, as in replaceLocked.
	for _, p := range slices.Backward(d.plane.programs()) {
		if err := p.at(d.pins()).Update(d.pickHook(), d.programs[p]); err != nil {
			return fmt.Errorf("replace program %s: %w", p, err)
		}
	}
	for _, p := range d.plane.programs() {
		if err := d.programs[p].PinAs(d.pins(), p.String()); err != nil {
			return fmt.Errorf("pin program %s: %w", p, err)
		}
	}
	if err := d.tables.publish(d.pins(), slices.Sorted(maps.Keys(d.tables))); err != nil {
		return err
	}
	// Last: they tell a start that the change is not complete.
	if err := removeOutdated(d.pins(), d.specs); err != nil {
		return err
	}
	return d.removeStalePages()
}

// keepsOlder tells whether a device has a program that goes on until Promote or Replace.
func (d *Dataplane) keepsOlder(p Program, hook Hook, ifindex int) (bool, error) {
	if len(d.older) == 0 && d.later == nil {
		return false, nil
	}
	if hook == HookTCX {
		return p.at(d.pins()).HasLink(ifindex)
	}
	return p.at(d.pins()).HasAnyFilter(ifindex)
}
