package reconcile

import (
	"context"
	"slices"
)

// removals picks the keys to delete, and settles gated rows. t.mu is held.
//
// A change may have come after the tables that it adds to had their turn in this
// pass, as when a route moves to another gateway. Then what is there is spared until
// the next pass, which adds first; but once only, however often changes come.
func (t *Table[K, V]) removals(changed, early bool) (keys []K, events []Event[K]) {
	now := t.now()
	t.endLate()
	for k := range t.dirty {
		if !t.here(k, early) {
			continue
		}
		t.dirty[k] = false
		if f := t.failed[k]; f != nil && now.Before(f.retry) {
			continue
		}
		gone, gateErr := t.unwanted(k)
		if !gone {
			delete(t.spared, k)
			continue
		}
		if may, there := t.mayBe(k); there {
			_, spared := t.spared[k]
			delete(t.spared, k)
			if changed && !spared {
				t.spared[k] = struct{}{}
				continue
			}
			if !t.kept(k, may, gateErr) {
				keys = append(keys, k)
			}
			continue
		}
		delete(t.dirty, k)
		t.shut(k, gateErr)
		// Also when nobody wants the key any more: a failure of it may have been told.
		events = append(events, Event[K]{Key: k, Err: gateErr})
	}
	return keys, events
}

// mayBe tells whether a row is there, or may be, and with which values.
func (t *Table[K, V]) mayBe(k K) (values []V, there bool) {
	if v, there := t.rows.actual(k); there {
		return []V{v}, true
	}
	values, there = t.rows.unknown[k]
	return values, there
}

// kept tells whether a row that is to be absent stays for now. One that is held stays dirty: it is
// looked at in every pass.
func (t *Table[K, V]) kept(k K, may []V, gateErr error) bool {
	if t.held(k, may, gateErr) {
		delete(t.unready, k)
		return true
	}
	v, late := t.lingers(k, may, gateErr)
	if late {
		t.stay(k, v)
	}
	return late
}

// held tells whether a row that is to be absent stays, whichever it is of those that may
// be there. What the gate keeps out is wanted still: its source has spoken, and is not
// waited for.
func (t *Table[K, V]) held(k K, may []V, gateErr error) bool {
	return !t.told || gateErr == nil && t.opts.Hold != nil &&
		slices.ContainsFunc(may, func(v V) bool { return t.opts.Hold(k, v) })
}

// lingers tells the same of a row that is used still, and which it is.
func (t *Table[K, V]) lingers(k K, may []V, gateErr error) (v V, late bool) {
	if !t.told || gateErr != nil || t.opts.Linger == nil {
		return v, false
	}
	i := slices.IndexFunc(may, func(v V) bool { return t.opts.Linger(k, v) })
	if i < 0 {
		return v, false
	}
	return may[i], true
}

// stay has a row be wanted as it is, because it lingers.
func (t *Table[K, V]) stay(k K, v V) {
	t.rows.setWanted(k, v)
	t.late[k] = struct{}{}
	t.settle(k)
	if a, there := t.rows.actual(k); there && a == v {
		delete(t.dirty, k)
		return
	}
	t.in.Kick() // it is written before it counts
}

// endLate has the rows removed that are used no longer.
func (t *Table[K, V]) endLate() {
	for k := range t.late {
		if v, _ := t.rows.wanted(k); !t.opts.Linger(k, v) {
			t.remove(k)
		}
	}
}

// unwanted tells whether a key is to be absent, and the gate's word if that is why.
func (t *Table[K, V]) unwanted(k K) (bool, error) {
	w, ok := t.rows.wanted(k)
	if !ok {
		return true, nil
	}
	if t.opts.Gate == nil {
		return false, nil
	}
	err := t.opts.Gate(k, w)
	return err != nil, err
}

// del deletes those of the keys that are still unwanted and not kept, and whose removal overtakes
// nothing: a pass is long, and a row that is wanted again meanwhile must not blink.
func (t *Table[K, V]) del(ctx context.Context, candidates []K, early bool) {
	for batch := range slices.Chunk(candidates, t.opts.BatchSize) {
		if ctx.Err() != nil || !t.unapply(ctx, batch, early) {
			return
		}
	}
}

// unapply hands one batch of removals to the driver; false: it has not returned.
func (t *Table[K, V]) unapply(ctx context.Context, batch []K, early bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.free() {
		return false
	}
	waits := t.behind(t.in.late(t, t.at(early), true), true)
	flight := make(map[K]*V, len(batch))
	keys := make([]K, 0, len(batch))
	for _, k := range batch {
		if !t.goes(k) {
			continue
		}
		if late := waits(k, t.rows.possible(k)...); late != nil {
			t.wait(k, late)
			continue
		}
		keys = append(keys, k)
		flight[k] = nil
	}
	if len(keys) == 0 {
		return true
	}
	t.flight = flight
	return t.run(func() {
		errs := t.driver.Delete(ctx, keys)
		t.landed(ctx, len(keys), errs, func(i int, err error) Event[K] { return t.deleted(keys[i], err) })
	})
}

// goes asks again what was asked when a key was picked. One that was wanted meanwhile, and is not
// any more, goes in the next pass, which adds first; but a gate that is closed waits for nothing.
func (t *Table[K, V]) goes(k K) bool {
	gone, gateErr := t.unwanted(k)
	if !gone || t.dirty[k] && gateErr == nil {
		return false
	}
	may, there := t.mayBe(k)
	return !there || !t.kept(k, may, gateErr)
}

func (t *Table[K, V]) deleted(k K, err error) Event[K] {
	if err != nil {
		t.ops.DeleteErrors++
		t.doubt(err, k)
		t.fail(k, err)
		return Event[K]{Key: k, Err: err}
	}
	t.ops.Deleted++
	t.rows.forget(k)
	gone, gateErr := t.unwanted(k)
	if gone {
		delete(t.dirty, k)
	}
	t.shut(k, gateErr)
	return Event[K]{Key: k, Err: gateErr}
}

// shut takes note that a row is not there, and of the gate's word if that is why.
func (t *Table[K, V]) shut(k K, gateErr error) {
	if gateErr == nil {
		t.settle(k)
		return
	}
	t.failed[k] = &failure{err: gateErr, retry: t.now()}
	t.note(k, gateErr)
}
