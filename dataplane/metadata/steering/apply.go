package steering

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
	"github.com/ovn-sluice/sluice/dataplane/metadata/identity"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// change is one row on its way.
type change struct {
	key   string
	old   *entry // nil: there was none
	entry *entry // nil: it goes
	taken []identity.Number
	// left are devices that it has no rows on any more.
	left []uint32
	err  error
}

// Apply takes away what is in the way of the rows, writes the file, and adds.
func (d *Driver) Apply(ctx context.Context, rows []reconcile.Row[string, intent.MetadataPort]) []error {
	err := errors.Join(d.known(ctx), ctx.Err())
	x := d.index()
	changes := make([]*change, len(rows))
	for i, r := range rows {
		c := &change{key: r.Key, old: d.entries[r.Key], err: err}
		changes[i] = c
		d.name(r.Value.Tap)
		if c.err == nil {
			c.err = d.prepare(x, c, r.Value)
		}
	}
	d.publish(changes)
	for _, c := range changes {
		if c.err == nil {
			c.err = d.add(c.entry)
		}
	}
	return results(changes, "metadata of port %s: %w")
}

// Delete removes the rows of the maps and the programs, then writes the file.
func (d *Driver) Delete(ctx context.Context, keys []string) []error {
	err := errors.Join(d.known(ctx), ctx.Err())
	x := d.index()
	changes := make([]*change, len(keys))
	for i, key := range keys {
		c := &change{key: key, old: d.entries[key], err: err}
		changes[i] = c
		if c.err != nil {
			continue
		}
		if ifindex, ok := unownedOf(key); ok {
			c.left, c.err = []uint32{ifindex}, d.clearNobodys(x, ifindex)
		} else {
			c.err = d.clear(x, c)
		}
	}
	d.publish(changes)
	return results(changes, "removing the metadata of port %s: %w")
}

// known sees to it that what is there has been read once: the file is written as a whole.
func (d *Driver) known(ctx context.Context) error {
	if d.listed {
		return nil
	}
	_, err := d.List(ctx)
	return err
}

func results(changes []*change, format string) []error {
	errs := make([]error, len(changes))
	for i, c := range changes {
		if c.err != nil {
			errs[i] = fmt.Errorf(format, c.key, c.err)
		}
	}
	return reconcile.Results(errs)
}

// prepare finds the numbers of a row, and takes out of the maps what it has no more, and
// what is in its way.
func (d *Driver) prepare(x *index, c *change, v intent.MetadataPort) (err error) {
	if v.Tap == (intent.Tap{}) {
		if _, err := d.config.Names.Name(v.Network); err != nil {
			return err
		}
	} else if there, err := d.isThere(v.Tap); err != nil {
		return err
	} else if !there {
		// The index may be another device's next.
		return cmp.Or(errors.Join(d.clear(x, c), d.detach(c.left, d.entries, c.key)),
			fmt.Errorf("%w for the device %s with the index %d", reconcile.ErrNotReady, v.Tap.Name, v.Tap.IfIndex))
	}
	if c.entry, c.taken, err = d.plan(v, c.old); err != nil {
		return err
	}
	return errors.Join(d.clear(x, c), d.clearWay(x, c.entry))
}

// clear takes what the new entry does not have out of the maps.
func (d *Driver) clear(x *index, c *change) error {
	if c.old == nil {
		return nil
	}
	stays := rows{}
	for _, s := range c.entry.sources() {
		stays[bare(s)] = s.Answer
	}
	for _, n := range c.old.numbers {
		for _, s := range x.of(n) {
			if _, ok := stays[s]; ok {
				continue
			}
			if err := d.remove(s); err != nil {
				return err
			}
		}
	}
	if tap := c.old.value.Tap; c.entry == nil || c.entry.value.Tap.IfIndex != tap.IfIndex {
		c.left = append(c.left, tap.IfIndex)
	}
	return nil
}

// clearWay takes out of the maps what others have on the entry's device: under another
// name, as nobody's, or in one of its places.
func (d *Driver) clearWay(x *index, e *entry) error {
	if e.value.Tap == (intent.Tap{}) {
		return nil
	}
	places := map[taps.Source]uint32{}
	for _, s := range e.sources() {
		places[place(s)] = s.Number
	}
	for _, s := range x.on(e.value.Tap.IfIndex) {
		n, wanted := places[place(s)]
		port, owned := x.owner(s)
		switch {
		case wanted && n == s.Number:
			continue
		case !wanted && owned && d.entries[port].value.Tap.Name == e.value.Tap.Name:
			continue
		}
		if err := d.remove(s); err != nil {
			return err
		}
		if !owned {
			d.give([]identity.Number{identity.Number(s.Number)})
		}
	}
	return nil
}

// clearNobodys takes what is nobody's on a device out of the maps.
func (d *Driver) clearNobodys(x *index, ifindex uint32) error {
	for _, s := range x.on(ifindex) {
		if _, owned := x.owner(s); owned {
			continue
		}
		if err := d.remove(s); err != nil {
			return err
		}
		d.give([]identity.Number{identity.Number(s.Number)})
	}
	return nil
}

// detach takes the program off devices that no port but the one has.
func (d *Driver) detach(devices []uint32, entries map[string]*entry, but string) error {
	for _, ifindex := range devices {
		_, on := d.attached[ifindex]
		for name, e := range entries {
			on = on && (name == but || e.value.Tap.IfIndex != ifindex)
		}
		if !on {
			continue
		}
		if err := d.config.Node.Do(func() error { return d.config.Maps.Detach(ifindex) }); err != nil {
			return err
		}
		delete(d.attached, ifindex)
	}
	return nil
}

// publish takes the program off devices that nobody has any more, and writes the file,
// with all changes that went well so far.
func (d *Driver) publish(changes []*change) {
	if !d.listed {
		return
	}
	next := d.next(changes)
	for _, c := range changes {
		if c.err == nil {
			c.err = d.detach(c.left, next, "")
		}
	}
	next = d.next(changes)
	differs := !d.whole
	for _, c := range changes {
		differs = differs || c.err == nil && !c.entry.equal(c.old)
	}
	var err error
	if differs {
		if err = d.replace(next); err == nil {
			d.entries = next
		}
	}
	for _, c := range changes {
		if c.err == nil {
			c.err = err
		}
		if c.err != nil {
			d.give(c.taken)
		} else {
			d.give(c.dropped())
		}
	}
}

// next are the entries with the changes that went well so far.
func (d *Driver) next(changes []*change) map[string]*entry {
	out := maps.Clone(d.entries)
	for _, c := range changes {
		switch {
		case c.err != nil:
		case c.entry == nil:
			delete(out, c.key)
		default:
			out[c.key] = c.entry
		}
	}
	return out
}

func (d *Driver) replace(next map[string]*entry) error {
	t, err := d.table(next)
	if err == nil {
		err = d.write(d.config.File, t)
	}
	d.whole = err == nil
	return err
}

func (e *entry) equal(o *entry) bool {
	if e == nil || o == nil {
		return e == o
	}
	return e.value == o.value && maps.Equal(e.numbers, o.numbers)
}

// dropped are the numbers that nobody has any more.
func (c *change) dropped() (out []identity.Number) {
	if c.old == nil {
		return nil
	}
	for g, n := range c.old.numbers {
		if c.entry == nil || c.entry.numbers[g] != n {
			out = append(out, n)
		}
	}
	return out
}

// add makes the rows of an entry, then puts the program on its tap.
func (d *Driver) add(e *entry) error {
	if e.value.Tap == (intent.Tap{}) {
		return nil
	}
	for _, s := range e.sources() {
		if err := d.put(s); err != nil {
			return err
		}
	}
	if err := d.config.Node.Do(func() error { return d.config.Maps.Attach(e.value.Tap.IfIndex) }); err != nil {
		return err
	}
	d.attached[e.value.Tap.IfIndex] = struct{}{}
	return nil
}
