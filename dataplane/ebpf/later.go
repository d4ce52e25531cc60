package ebpf

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
)

// The kernel's verifier takes seconds for the programs, and a start whose neighbours wait has
// not that long. Programs that run and differ from this build's go on meanwhile:
//
//   - where they use the maps that are written, as after a change of the programs or of
//     constants alone, what is written has its effect at once;
//   - where maps have other sizes, or an older layout that is filled anew, Open has copied the
//     rows, and whoever writes waits for Used;
//   - where maps have an older layout, what is written waits for Promote in any case.
//
// Until Replace nothing is changed of what runs and is pinned: a process that ends before
// leaves all as it was. Within it each step is one that a start recovers from, as before.

// later is what Open has left to Replace.
type later struct {
	// opening has the maps that take the place of others; nil: all maps are new, for Promote.
	opening *opening
	// begin is when flows were copied first.
	begin uint32
	// shared: the programs that run use the maps that are written.
	shared bool
}

func (l *later) close() {
	if l.opening != nil {
		l.opening.flows.close()
	}
}

// found is what openPrograms tells.
type found uint8

const (
	// mustLoad: a program does not run, or has the node for another one in the fabric.
	mustLoad found = iota
	// mayWait: all run, and some are to be replaced.
	mayWait
	// allCurrent: those that run are what would be loaded.
	allCurrent
)

// openPrograms opens the programs that run.
func (d *Dataplane) openPrograms() (found, error) {
	d.later.shared = !d.continues()
	all := allCurrent
	for _, p := range d.plane.programs() {
		spec, err := p.nodeSpec(d.node, d.specs)
		if err != nil {
			return mustLoad, err
		}
		now := pinned.Current(d.dir, p.String(), spec, d.tables)
		if now == nil {
			all = mayWait
			if now, err = pinned.Open(d.dir, p.String()); err != nil {
				return mustLoad, err
			}
			if now == nil || !sameNode(now, spec) {
				now.Close()
				return mustLoad, nil
			}
			d.later.shared = d.later.shared && now.Uses(d.tables)
		}
		d.programs[p] = now
	}
	return all, nil
}

// openOlder opens the programs that run on maps of an older layout.
func (d *Dataplane) openOlder() error {
	for _, p := range d.plane.programs() {
		now, err := pinned.Open(d.dir, p.String())
		if err != nil {
			return err
		}
		d.programs[p] = now
	}
	return nil
}

// continues tells whether a map is to go on under a new name, which tells the build before
// that it does not understand all of its rows: nor do its programs.
func (d *Dataplane) continues() bool {
	for name := range continued {
		if d.specs[name] != nil && fromBefore(d.dir, name) {
			return true
		}
	}
	return false
}

// sameNode tells whether a program that runs has the addresses and the device that a spec
// has: with others it would not take what is announced. Constants of another size are not
// known.
func sameNode(now *pinned.Program, spec *ebpf.CollectionSpec) bool {
	v := spec.Variables[bpfVarNode]
	if v == nil {
		return true
	}
	want, have := pinned.ConstantsOf(spec), []byte(nil)
	if b, ok := now.Constants(); ok {
		have = b
	}
	if len(have) != len(want) || int(v.Offset)+int(unsafe.Sizeof(bpfNodeConstants{})) > len(want) {
		return false
	}
	return identityOf(have[v.Offset:]) == identityOf(want[v.Offset:])
}

// identityOf are the constants that say which node it is, and by which device.
func identityOf(b []byte) bpfNodeConstants {
	var c bpfNodeConstants
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&c)), unsafe.Sizeof(c)), b)
	return bpfNodeConstants{RouterMac: c.RouterMac, NexthopMac: c.NexthopMac, Vtep4: c.Vtep4, Vtep6: c.Vtep6, VxlanIfindex: c.VxlanIfindex}
}

// Replaced tells whether this build's programs run, or wait for Promote alone.
func (d *Dataplane) Replaced() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.later == nil
}

// Used is closed when the programs that run use the maps that are written, or others follow
// by Promote. Rows that are written before have no effect yet.
func (d *Dataplane) Used() <-chan struct{} { return d.used }

func (d *Dataplane) noteUsed() {
	if d.later != nil && !d.later.shared && len(d.older) == 0 {
		return
	}
	d.usedOnce.Do(func() { close(d.used) })
}

// Replace loads what Open has put off, and has it replace what runs, in place. Meanwhile
// everything else may be called. When ctx ends it returns, and nothing is replaced.
func (d *Dataplane) Replace(ctx context.Context) error {
	for {
		d.mu.Lock()
		node, waits := d.node, d.later != nil
		d.mu.Unlock()
		if !waits {
			return nil
		}
		loaded, err := d.loadUntil(ctx, node)
		if err != nil {
			return err
		}
		if done, err := d.replaceLoaded(node, loaded); done {
			return err
		}
	}
}

// replacing is held while programs are loaded that replace others, which forward meanwhile:
// two planes of one process would take all processors together.
var replacing = make(chan struct{}, 1)

// loadUntil is loadPrograms until ctx ends: the kernel cannot be told to stop.
// It goes on with maps of its own then, since Close does not wait for it.
func (d *Dataplane) loadUntil(ctx context.Context, n Node) ([]*pinned.Program, error) {
	select {
	case replacing <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	own, err := d.tables.clone()
	if err != nil {
		<-replacing
		return nil, err
	}
	var loaded []*pinned.Program
	done := make(chan error, 1)
	go func() {
		var err error
		loaded, err = d.loadPrograms(n, own)
		own.close()
		<-replacing
		done <- err
	}()
	select {
	case err := <-done:
		return loaded, err
	case <-ctx.Done():
		go func() {
			if <-done == nil {
				closePrograms(loaded)
			}
		}()
		return nil, ctx.Err()
	}
}

// replaceLoaded is false when the node became another one, or has been replaced, while the
// programs were loaded.
func (d *Dataplane) replaceLoaded(n Node, loaded []*pinned.Program) (done bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.later == nil || d.node != n {
		closePrograms(loaded)
		return false, nil
	}
	return true, d.replaceWith(n, loaded)
}

// replaceNow loads programs and has them replace those that run.
func (d *Dataplane) replaceNow(n Node) error {
	loaded, err := d.loadPrograms(n, d.tables)
	if err != nil {
		return err
	}
	return d.replaceWith(n, loaded)
}

// takePrograms are those that openPrograms has opened.
func (d *Dataplane) takePrograms() (list []*pinned.Program) {
	for _, p := range d.plane.programs() {
		list = append(list, d.programs[p])
	}
	clear(d.programs)
	return list
}

// replaceWith has loaded programs replace those that run, and finishes what Open has left.
func (d *Dataplane) replaceWith(n Node, loaded []*pinned.Program) error {
	var late uint32
	o := d.putOff()
	if o != nil {
		if err := d.beforeReplacing(o, &late); err != nil {
			closePrograms(loaded)
			return err
		}
	}
	// Backwards: what sees answers knows those of flows that begin by the new ones before these do.
	for i, p := range slices.Backward(d.plane.programs()) {
		now, err := d.adoptProgram(p, loaded[i])
		if err != nil {
			closePrograms(loaded[:i+1])
			return fmt.Errorf("replace program %s: %w", p, err)
		}
		d.programs[p].Close()
		d.programs[p] = now
	}
	d.node = n
	if o != nil {
		if err := errors.Join(o.flows.copyTo(d.tables, &late), nameContinued(d.pins()), removeOutdated(d.pins(), d.specs)); err != nil {
			return err
		}
		o.flows.close()
	}
	if len(d.older) == 0 {
		if err := d.removeStalePages(); err != nil {
			return err
		}
	}
	d.later = nil
	d.noteUsed()
	return nil
}

// putOff is what Open has opened; nil where nothing is put off, or waits for Promote.
func (d *Dataplane) putOff() *opening {
	if d.later == nil {
		return nil
	}
	return d.later.opening
}

// beforeReplacing copies the flows that have begun while the programs were loaded, and
// gives rebuilt maps their names: before programs use them, since who comes after a crash
// finds the maps of those that do not yet by the programs themselves.
func (d *Dataplane) beforeReplacing(o *opening, late *uint32) (err error) {
	if *late, err = monotonic(); err != nil {
		return err
	}
	if err := o.flows.copyTo(d.tables, &d.later.begin); err != nil {
		return err
	}
	if err := d.tables.publish(d.pins(), o.rebuilt); err != nil {
		return err
	}
	if len(o.rebuilt) > 0 {
		d.log.Info("maps were rebuilt with another size", "maps", o.rebuilt)
	}
	o.rebuilt = nil
	return nil
}
