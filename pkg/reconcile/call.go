package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// defaultGrace is longer than calls take that nothing is wrong with, and short where all
// that a node does waits for it. slowPart is the part of it that a driver is given whose
// last call has taken longer.
const (
	defaultGrace = 500 * time.Millisecond
	slowPart     = 16
)

// turn is a driver's: at most one call of it runs at a time. Guarded by the pipeline.
type turn struct {
	done  chan struct{} // closed when the call that runs has returned; nil: none runs
	begun time.Time
	slow  bool // the last call took longer than the grace
	// missed: in this pass the table had no turn, or not the whole of it.
	missed bool
	// unread: in this pass the actual side could not be read back. The table has no turn then.
	unread bool
	// waited: somebody has gone on without the driver; a pass follows its return.
	waited bool
	// behind is the table whose driver rows of this one have waited for in this pass.
	behind Stage
}

// Busy tells since when a call of the driver runs that has outlasted its grace; the zero
// time if none does.
func (t *Table[K, V]) Busy() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.busy()
}

func (t *Table[K, V]) busy() time.Time {
	if t.turn.done == nil || time.Since(t.turn.begun) < t.in.grace {
		return time.Time{}
	}
	return t.turn.begun
}

// free waits for the driver as long as the call that runs has grace. The lock is held, and
// let go meanwhile.
func (t *Table[K, V]) free() bool { return t.turn.done == nil || t.await() }

// await waits for the call that runs as long as it has grace. The lock is held, and let go
// meanwhile.
func (t *Table[K, V]) await() bool {
	done, grace := t.turn.done, t.in.grace
	if t.turn.slow {
		grace /= slowPart
	}
	timer := time.NewTimer(time.Until(t.turn.begun.Add(grace)))
	defer timer.Stop()
	t.mu.Unlock()
	select {
	case <-done:
	case <-timer.C:
	}
	t.mu.Lock()
	if t.turn.done == nil {
		return true
	}
	t.turn.missed, t.turn.waited = true, true
	return false
}

// run has the driver, which is free, do f, and waits for it as long as it has grace. The
// lock is held, and let go meanwhile, and for f.
func (t *Table[K, V]) run(f func()) bool {
	t.begin()
	t.in.calls.Add(1)
	go func() {
		defer t.in.calls.Done()
		f()
		t.mu.Lock()
		defer t.mu.Unlock()
		t.end()
	}()
	return t.await()
}

func (t *Table[K, V]) begin() { t.turn.done, t.turn.begun = make(chan struct{}), time.Now() }

func (t *Table[K, V]) end() {
	close(t.turn.done)
	t.turn.done = nil
	t.turn.slow = time.Since(t.turn.begun) > t.in.grace
	if t.turn.waited {
		t.turn.waited = false
		t.in.Kick()
	}
}

// begins begins a pass.
func (t *Table[K, V]) begins() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn.missed, t.turn.unread, t.turn.behind, t.passBegun = false, false, nil, t.now()
}

func (t *Table[K, V]) missed() bool {
	if t.turn.done != nil {
		t.turn.waited = true
		return true
	}
	return t.turn.missed || t.turn.unread
}

func (t *Table[K, V]) root() Stage {
	if t.turn.done == nil && t.turn.behind != nil {
		return t.turn.behind
	}
	return t
}

// wait has a row wait for the rows of a table that is late. So this one is late, too.
func (t *Table[K, V]) wait(k K, late Stage) {
	t.turn.missed, t.turn.behind = true, late.root()
	t.waits[k] = t.turn.behind
}

// awaitsTurn tells what a row waits for that has neither failed nor been written.
func (t *Table[K, V]) awaitsTurn(k K) error {
	late := t.waits[k]
	if late == nil {
		late = t
	}
	since := late.busy()
	if err := t.in.listErr[late.Name()]; err != nil && since.IsZero() {
		return fmt.Errorf("%w for its turn: table %s cannot be read back: %s", ErrNotReady, late.Name(), err)
	}
	if since.IsZero() {
		return fmt.Errorf("%w for its turn", ErrNotReady)
	}
	return fmt.Errorf("%w for its turn: the driver of table %s has not returned for %s", ErrNotReady, late.Name(), time.Since(since).Round(time.Second))
}

func (t *Table[K, V]) pending(coming bool) bool {
	if !coming {
		return len(t.dirty) > 0
	}
	for k := range t.dirty {
		if t.WantedLocked(k) {
			return true
		}
	}
	return false
}

// nextRetry is when the next failed key is due; zero when none is. One that was due before the
// pass began has not been tried in it: it is kept, or waits for a call of some driver. Whoever
// ends that has a pass run.
func (t *Table[K, V]) nextRetry() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	var next time.Time
	for k := range t.dirty {
		if f := t.failed[k]; f != nil && f.retry.After(t.passBegun) && (next.IsZero() || f.retry.Before(next)) {
			next = f.retry
		}
	}
	return next
}

// behind returns what tells for which of the tables that are late a row waits that comes, or
// goes and may have any of some values; nil: for none.
func (t *Table[K, V]) behind(late []Stage, goes bool) func(K, ...V) Stage {
	waits := make([]func(K, V) bool, len(late))
	for i, s := range late {
		waits[i] = func(K, V) bool { return true }
		if t.opts.Behind != nil {
			waits[i] = t.opts.Behind(s, goes)
		}
	}
	return func(k K, values ...V) Stage {
		for i, waits := range waits {
			if slices.ContainsFunc(values, func(v V) bool { return waits(k, v) }) {
				return late[i]
			}
		}
		return nil
	}
}

// EachPendingLocked calls each for the rows that wait for a turn, or for what it does, with
// every value that is wanted of them, or there, or may be, or is being written. each may not
// change this table. See ActualLocked.
func (t *Table[K, V]) EachPendingLocked(each func(K, V)) {
	for k := range t.dirty {
		if w, wanted := t.rows.wanted(k); wanted {
			each(k, w)
		}
		for _, v := range t.rows.possible(k) {
			each(k, v)
		}
		if v := t.flight[k]; v != nil {
			each(k, *v)
		}
	}
}

// refresh lists the actual side when that was asked for, and tells whether it is known.
func (t *Table[K, V]) refresh(ctx context.Context) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.free() {
		return false, nil
	}
	if t.listed {
		return true, nil
	}
	if t.turn.unread { // at the place of Early
		return false, nil
	}
	no, result := t.listNo, make(chan error, 1)
	if !t.run(func() { result <- t.list(ctx, no) }) {
		return false, nil
	}
	err := <-result
	t.turn.unread = err != nil
	return err == nil, err
}

// patience is how many graces a call is waited for by one who only reads.
const patience = 10

// readBack lists the actual side, whether or not that was asked for. A driver that does not
// return is not waited for.
func (t *Table[K, V]) readBack(ctx context.Context) error {
	t.mu.Lock()
	for t.turn.done != nil {
		done, took := t.turn.done, time.Since(t.turn.begun)
		t.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(max(t.in.grace, patience*t.in.grace-took)):
			return fmt.Errorf("list %s: a call of its driver runs for more than %s", t.name, patience*t.in.grace)
		}
		t.mu.Lock()
	}
	t.Relist()
	no := t.listNo
	t.begin()
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.end()
	}()
	return t.list(ctx, no)
}

// list takes over what the driver lists. A key of which it was not known what is there is
// known again; a list that fails says nothing.
func (t *Table[K, V]) list(ctx context.Context, no int) error {
	rows, err := t.driver.List(ctx)
	if err != nil {
		err = fmt.Errorf("list %s: %w", t.name, err)
	}
	if !interrupted(ctx, err) {
		t.in.noteList(t.name, err)
	}
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	doubted := t.rows.unknown
	t.rows.setAllActual(rows)
	t.listed, t.known = no == t.listNo, true
	for k := range doubted {
		if a, there := t.rows.actual(k); there == t.WantedLocked(k) && (!there || t.rows.want[k].value == a) {
			t.settle(k) // it came about all the same
		}
	}
	for k, w := range t.rows.want {
		if !w.placed {
			t.differs(k)
		}
	}
	for k := range t.rows.other {
		t.differs(k)
	}
	return nil
}

// differs has a key looked at in the next pass, and leaves it to this one where it is decided already.
func (t *Table[K, V]) differs(k K) {
	if _, known := t.dirty[k]; !known {
		t.dirty[k] = false
	}
}
