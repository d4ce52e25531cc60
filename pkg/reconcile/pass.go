package reconcile

import (
	"context"
	"errors"
	"slices"
)

// at is the table's place in the pipeline, or that of Early.
func (t *Table[K, V]) at(early bool) int {
	if early {
		return t.earlyPlace
	}
	return t.place
}

// here tells whether a row has its turn at the place of Early, or at the table's own.
func (t *Table[K, V]) here(k K, early bool) bool {
	return (t.opts.Early != nil && t.opts.Early(k)) == early
}

// additions picks the dirty rows that are to be written now. t.mu is held.
func (t *Table[K, V]) additions(early bool) (rows []Row[K, V], events []Event[K]) {
	now, waits := t.now(), t.behind(t.in.late(t, t.at(early), false), false)
	for k := range t.dirty {
		if !t.here(k, early) {
			continue
		}
		t.dirty[k] = false
		delete(t.waits, k)
		w, ok := t.rows.wanted(k)
		if !ok {
			continue
		}
		if f := t.failed[k]; f != nil && now.Before(f.retry) {
			continue
		}
		if t.opts.Gate != nil {
			if err := t.opts.Gate(k, w); err != nil {
				continue // the removals see it
			}
		}
		a, there := t.rows.actual(k)
		if there && a == w {
			delete(t.dirty, k)
			t.settle(k)
			events = append(events, Event[K]{Key: k, Programmed: true})
			continue
		}
		if late := waits(k, w); late != nil {
			t.wait(k, late)
			continue
		}
		if err := t.awaits(k, w); err != nil {
			t.fail(k, err)
			events = append(events, Event[K]{Key: k, Err: err})
			continue
		}
		rows = append(rows, Row[K, V]{k, w})
	}
	return rows, events
}

// awaits tells why a row waits that is to be written over any that may be there.
func (t *Table[K, V]) awaits(k K, wanted V) error {
	if t.opts.Await == nil {
		return nil
	}
	may := t.rows.possible(k)
	for _, v := range may {
		if err := t.opts.Await(k, wanted, v, true); err != nil {
			return err
		}
	}
	if len(may) > 0 {
		return nil
	}
	var none V
	return t.opts.Await(k, wanted, none, false)
}

// add hands the driver what is to be written, a batch a call. What a call that has outlasted
// its grace leaves is done in another pass.
func (t *Table[K, V]) add(ctx context.Context, early bool) {
	t.mu.Lock()
	if !t.free() {
		t.mu.Unlock()
		return
	}
	rows, events := t.additions(early)
	t.mu.Unlock()
	t.observe(events)
	for batch := range slices.Chunk(rows, t.opts.BatchSize) {
		if ctx.Err() != nil || !t.apply(ctx, batch) {
			return
		}
	}
}

// apply hands one batch to the driver; false: it has not returned.
func (t *Table[K, V]) apply(ctx context.Context, batch []Row[K, V]) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.free() {
		return false
	}
	if batch = t.still(batch); len(batch) == 0 {
		return true
	}
	t.flight = make(map[K]*V, len(batch))
	for i := range batch {
		t.flight[batch[i].Key] = &batch[i].Value
	}
	return t.run(func() {
		errs := t.driver.Apply(ctx, batch)
		t.landed(ctx, len(batch), errs, func(i int, err error) Event[K] { return t.added(batch[i], err) })
	})
}

// still are those of the rows that nobody has touched since they were picked: what came for the
// others is made whole by the next pass.
func (t *Table[K, V]) still(batch []Row[K, V]) []Row[K, V] {
	return slices.DeleteFunc(batch, func(r Row[K, V]) bool { return t.dirty[r.Key] })
}

// landed takes the results of a call, and tells of them. A call that the end of the process
// has cut off says nothing of its rows.
func (t *Table[K, V]) landed(ctx context.Context, n int, errs []error, done func(int, error) Event[K]) {
	t.mu.Lock()
	t.flight = nil
	events := make([]Event[K], 0, n)
	for i := range n {
		if err := resultOf(errs, i); !interrupted(ctx, err) {
			events = append(events, done(i, err))
		}
	}
	t.mu.Unlock()
	if ctx.Err() == nil {
		t.observe(events)
	}
}

func (t *Table[K, V]) added(r Row[K, V], err error) Event[K] {
	if err != nil {
		t.ops.ApplyErrors++
		t.doubt(err, r.Key, r.Value)
		t.fail(r.Key, err)
		return Event[K]{Key: r.Key, Err: err}
	}
	t.ops.Applied++
	t.rows.setActual(r.Key, r.Value)
	t.settle(r.Key)
	if w, ok := t.rows.wanted(r.Key); !ok || w != r.Value {
		return Event[K]{Key: r.Key}
	}
	if t.dirty[r.Key] { // touched while it was written
		if gone, gateErr := t.unwanted(r.Key); gone {
			return Event[K]{Key: r.Key, Err: gateErr}
		}
	}
	delete(t.dirty, r.Key)
	return Event[K]{Key: r.Key, Programmed: true}
}

// mostPossible bounds the values that a row may have: one that may have more is read back
// before it is written again.
const mostPossible = 8

// doubt follows a call that has failed: what was there may be there still, or what was tried.
func (t *Table[K, V]) doubt(err error, k K, tried ...V) {
	if isUnchanged(err) {
		return
	}
	t.rows.doubt(k, tried...)
	if len(t.rows.unknown[k]) > mostPossible {
		t.listed = false
		t.listNo++
	}
}

func (t *Table[K, V]) fail(k K, err error) {
	t.note(k, err)
	f := t.failed[k]
	if f == nil || !errors.Is(err, ErrNotReady) != !errors.Is(f.err, ErrNotReady) {
		f = &failure{}
		t.failed[k] = f
	}
	f.err = err
	f.attempts++
	delay := t.opts.Backoff << min(f.attempts-1, 16)
	f.tried = t.now()
	f.retry = f.tried.Add(min(delay, t.opts.MaxBackoff))
	if t.dirty[k] { // touched during the call: its failure says nothing of what is wanted now
		f.retry = f.tried
	}
}

// interrupted tells that a row failed because the pass was ended: that says
// nothing of the row.
func interrupted(ctx context.Context, err error) bool { return err != nil && ctx.Err() != nil }

// shrink ends a table's pass: a map that once had a row for each key of the table
// keeps that room, and is as slow to walk, when it is empty.
func (t *Table[K, V]) shrink() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.dirty) == 0 {
		t.dirty, t.waits = map[K]bool{}, map[K]Stage{}
	}
	if len(t.failed) == 0 {
		t.failed = map[K]*failure{}
	}
	if len(t.unready) == 0 {
		t.unready = map[K]unready{}
	}
}

func resultOf(errs []error, i int) error {
	if i < len(errs) {
		return errs[i]
	}
	return nil
}
