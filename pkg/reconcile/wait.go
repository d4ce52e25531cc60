package reconcile

import (
	"errors"
	"fmt"
	"time"
)

// Wait is what rows of a table have waited for since before some time.
type Wait struct {
	Table string
	Rows  int
	// Key is one of them, always the same of the same rows, and Err what it waits for.
	Key string
	Err error
}

// unready is since when a row has been failing with ErrNotReady without a break, and its
// latest error. A touch is no break: it ends the failure, and says nothing of the row.
type unready struct {
	since time.Time
	err   error
}

// settle takes note that a row is as it is to be.
func (t *Table[K, V]) settle(k K) {
	delete(t.failed, k)
	delete(t.unready, k)
}

// note follows how long a row that fails has been waiting.
func (t *Table[K, V]) note(k K, err error) {
	if !errors.Is(err, ErrNotReady) {
		delete(t.unready, k)
		return
	}
	u, waits := t.unready[k]
	if !waits {
		u.since = t.now()
	}
	u.err = err
	t.unready[k] = u
}

// Waited implements Stage.
func (t *Table[K, V]) Waited(before time.Time) Wait {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.WaitedLocked(before, nil)
}

// WaitedLocked is Waited, inside an update or a view of the pipeline, for the rows that expected,
// when set, does not match. It is told the values that are wanted; of a row that is not, the
// zero value.
func (t *Table[K, V]) WaitedLocked(before time.Time, expected func(K, V) bool) Wait {
	var first K
	var at unready
	w := Wait{Table: t.name}
	for k, u := range t.unready {
		if !u.since.Before(before) || errors.Is(u.err, ErrMissing) {
			continue
		}
		if v, _ := t.rows.wanted(k); expected != nil && expected(k, v) {
			continue
		}
		w.Rows++
		// The first that began to wait; keys are written out only where several did at once.
		if w.Rows == 1 || u.since.Before(at.since) || u.since.Equal(at.since) && fmt.Sprint(k) < fmt.Sprint(first) {
			first, at = k, u
		}
	}
	if w.Rows > 0 {
		w.Key, w.Err = fmt.Sprint(first), at.err
	}
	return w
}

// AwaitedLocked is what a row waits for that fails with ErrNotReady; nil if it does not. Unlike
// the error of StateLocked it outlasts a touch. See ActualLocked.
func (t *Table[K, V]) AwaitedLocked(k K) error { return t.unready[k].err }
