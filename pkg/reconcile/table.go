package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"
)

// TableOptions tune a table. The zero value is usable.
type TableOptions[K, V comparable] struct {
	// Gate, when set, is asked before a row is added and again whenever the key
	// is touched. While it returns an error the row counts as not wanted, and the
	// error as its state. It is called with the table's lock held and must not
	// call the table.
	Gate func(K, V) error
	// Hold, when set and true for a row that is no longer wanted, keeps the row:
	// its source is not in sync, so its absence means nothing. Called as Gate.
	Hold func(K, V) bool
	// Observe, when set, is told after a pass about every key that it changed or
	// failed on. It may touch other tables. No lock is held.
	Observe func([]Event[K])
	// BatchSize bounds the rows of one driver call; 0 means 4096.
	BatchSize int
	// Backoff is the first delay before a failed key is tried again; it doubles
	// up to MaxBackoff. 0 means 100 ms and 30 s.
	Backoff, MaxBackoff time.Duration
}

// Event tells what became of a key in a pass.
type Event[K comparable] struct {
	Key K
	// Programmed: the wanted row is in place. False after a removal or failure.
	Programmed bool
	// Err is why not, for a row that is wanted.
	Err error
}

// Table is the wanted and the actual side of one kind of row. Its methods are
// safe for concurrent use; the passes belong to one Pipeline.
type Table[K, V comparable] struct {
	name   string
	driver Driver[K, V]
	opts   TableOptions[K, V]
	now    func() time.Time

	mu     *sync.Mutex // the pipeline's, shared by its tables
	wanted map[K]V
	actual map[K]V
	dirty  map[K]struct{} // keys that may differ; the rest is known to be equal
	failed map[K]*failure
	listed bool // the actual side need not be read back
	known  bool // it has been read back once: what it says counts, even while reading again fails
	listNo int  // counts Relist calls, so that one that comes during a List is not lost
}

type failure struct {
	err      error
	attempts int
	retry    time.Time
}

// NewTable returns an empty table. Nothing is read before the first pass.
func NewTable[K, V comparable](name string, driver Driver[K, V], opts TableOptions[K, V]) *Table[K, V] {
	if opts.BatchSize == 0 {
		opts.BatchSize = 4096
	}
	if opts.Backoff == 0 {
		opts.Backoff = 100 * time.Millisecond
	}
	if opts.MaxBackoff == 0 {
		opts.MaxBackoff = 30 * time.Second
	}
	return &Table[K, V]{
		name: name, driver: driver, opts: opts, now: time.Now, mu: new(sync.Mutex),
		wanted: map[K]V{}, actual: map[K]V{}, dirty: map[K]struct{}{}, failed: map[K]*failure{},
	}
}

// Name is the table's name in status, metrics and logs.
func (t *Table[K, V]) Name() string { return t.name }

// Set replaces the whole wanted side. Call it inside Pipeline.Update.
func (t *Table[K, V]) Set(wanted map[K]V) {
	for k := range t.wanted {
		if _, ok := wanted[k]; !ok {
			t.remove(k)
		}
	}
	for k, v := range wanted {
		t.want(k, v)
	}
}

// Update changes the wanted side. Call it inside Pipeline.Update.
func (t *Table[K, V]) Update(upserts map[K]V, deletes []K) {
	for _, k := range deletes {
		t.remove(k)
	}
	for k, v := range upserts {
		t.want(k, v)
	}
}

// Touch has the keys looked at again in the next pass: their gate may answer
// differently. Call it inside Pipeline.Update.
func (t *Table[K, V]) Touch(keys ...K) {
	for _, k := range keys {
		t.touch(k)
	}
}

// TouchAll is Touch for every key that is wanted or there.
func (t *Table[K, V]) TouchAll() {
	for k := range t.wanted {
		t.touch(k)
	}
	for k := range t.actual {
		t.touch(k)
	}
}

// Relist has the actual side read back in the next pass. Call it inside
// Pipeline.Update.
func (t *Table[K, V]) Relist() { t.listed = false; t.listNo++ }

func (t *Table[K, V]) want(k K, v V) {
	if old, ok := t.wanted[k]; ok && old == v {
		return
	}
	t.wanted[k] = v
	t.touch(k)
}

func (t *Table[K, V]) remove(k K) {
	if _, ok := t.wanted[k]; ok {
		delete(t.wanted, k)
		t.touch(k)
	}
}

func (t *Table[K, V]) touch(k K) {
	t.dirty[k] = struct{}{}
	delete(t.failed, k)
}

// State tells how a key stands: programmed, or why not.
func (t *Table[K, V]) State(k K) (programmed bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state(k)
}

// ProgrammedLocked is State for use inside a Gate of the same pipeline.
func (t *Table[K, V]) ProgrammedLocked(k K) bool { ok, _ := t.state(k); return ok }

func (t *Table[K, V]) state(k K) (bool, error) {
	w, ok := t.wanted[k]
	if !ok {
		return false, nil
	}
	if f := t.failed[k]; f != nil {
		return false, f.err
	}
	if a, ok := t.actual[k]; t.known && ok && a == w {
		return true, nil
	}
	return false, fmt.Errorf("%w for its turn", ErrNotReady)
}

// Rows copies both sides, for status and diff.
func (t *Table[K, V]) Rows() (wanted, actual map[K]V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.wanted), maps.Clone(t.actual)
}

// Wanted returns one wanted row.
func (t *Table[K, V]) Wanted(k K) (V, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v, ok := t.wanted[k]
	return v, ok
}

// refresh lists the actual side when that was asked for.
func (t *Table[K, V]) refresh(ctx context.Context) error {
	t.mu.Lock()
	need, no := !t.listed, t.listNo
	t.mu.Unlock()
	if !need {
		return nil
	}
	rows, err := t.driver.List(ctx)
	if err != nil {
		return fmt.Errorf("list %s: %w", t.name, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.actual = rows
	t.listed, t.known = no == t.listNo, true
	for k, w := range t.wanted {
		if a, ok := rows[k]; !ok || a != w {
			t.dirty[k] = struct{}{}
		}
	}
	for k := range rows {
		if _, ok := t.wanted[k]; !ok {
			t.dirty[k] = struct{}{}
		}
	}
	return nil
}

// additions picks the dirty rows that are to be written now. t.mu is held.
func (t *Table[K, V]) additions() (rows []Row[K, V], events []Event[K]) {
	now := t.now()
	for k := range t.dirty {
		w, ok := t.wanted[k]
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
		if a, ok := t.actual[k]; ok && a == w {
			delete(t.dirty, k)
			delete(t.failed, k)
			events = append(events, Event[K]{Key: k, Programmed: true})
			continue
		}
		rows = append(rows, Row[K, V]{k, w})
	}
	return rows, events
}

// removals picks the keys to delete, and settles gated rows. t.mu is held.
func (t *Table[K, V]) removals() (keys []K, events []Event[K]) {
	now := t.now()
	for k := range t.dirty {
		if f := t.failed[k]; f != nil && now.Before(f.retry) {
			continue
		}
		gone, gateErr := t.unwanted(k)
		if !gone {
			continue
		}
		if a, there := t.actual[k]; there {
			if t.opts.Hold == nil || !t.opts.Hold(k, a) {
				keys = append(keys, k)
			}
			continue // a held key stays dirty: it is looked at in every pass
		}
		delete(t.dirty, k)
		delete(t.failed, k)
		if gateErr != nil {
			t.failed[k] = &failure{err: gateErr, retry: now}
			events = append(events, Event[K]{Key: k, Err: gateErr})
		}
	}
	return keys, events
}

// unwanted tells whether a key is to be absent, and the gate's word if that is why.
func (t *Table[K, V]) unwanted(k K) (bool, error) {
	w, ok := t.wanted[k]
	if !ok {
		return true, nil
	}
	if t.opts.Gate == nil {
		return false, nil
	}
	err := t.opts.Gate(k, w)
	return err != nil, err
}

func (t *Table[K, V]) add(ctx context.Context) []Event[K] {
	t.mu.Lock()
	rows, events := t.additions()
	t.mu.Unlock()
	for len(rows) > 0 {
		batch := rows[:min(len(rows), t.opts.BatchSize)]
		rows = rows[len(batch):]
		errs := t.driver.Apply(ctx, batch)
		t.mu.Lock()
		for i, r := range batch {
			events = append(events, t.added(r, resultOf(errs, i)))
		}
		t.mu.Unlock()
	}
	return events
}

func (t *Table[K, V]) added(r Row[K, V], err error) Event[K] {
	if err != nil {
		t.fail(r.Key, err)
		return Event[K]{Key: r.Key, Err: err}
	}
	t.actual[r.Key] = r.Value
	delete(t.failed, r.Key)
	if t.wanted[r.Key] == r.Value {
		delete(t.dirty, r.Key)
	}
	return Event[K]{Key: r.Key, Programmed: true}
}

// del deletes those of the keys that are still unwanted: a pass is long, and a
// row that is wanted again meanwhile must not blink.
func (t *Table[K, V]) del(ctx context.Context, candidates []K) []Event[K] {
	var events []Event[K]
	for len(candidates) > 0 {
		batch := candidates[:min(len(candidates), t.opts.BatchSize)]
		candidates = candidates[len(batch):]
		t.mu.Lock()
		keys := make([]K, 0, len(batch))
		for _, k := range batch {
			if gone, _ := t.unwanted(k); gone {
				keys = append(keys, k)
			}
		}
		t.mu.Unlock()
		if len(keys) == 0 {
			continue
		}
		errs := t.driver.Delete(ctx, keys)
		t.mu.Lock()
		for i, k := range keys {
			events = append(events, t.deleted(k, resultOf(errs, i)))
		}
		t.mu.Unlock()
	}
	return events
}

func (t *Table[K, V]) deleted(k K, err error) Event[K] {
	if err != nil {
		t.fail(k, err)
		return Event[K]{Key: k, Err: err}
	}
	delete(t.actual, k)
	delete(t.failed, k)
	gone, gateErr := t.unwanted(k)
	if gone {
		delete(t.dirty, k)
	}
	if gateErr != nil {
		t.failed[k] = &failure{err: gateErr, retry: t.now()}
	}
	return Event[K]{Key: k, Err: gateErr}
}

func (t *Table[K, V]) fail(k K, err error) {
	f := t.failed[k]
	if f == nil || !errors.Is(err, ErrNotReady) != !errors.Is(f.err, ErrNotReady) {
		f = &failure{}
		t.failed[k] = f
	}
	f.err = err
	f.attempts++
	delay := t.opts.Backoff << min(f.attempts-1, 16)
	f.retry = t.now().Add(min(delay, t.opts.MaxBackoff))
}

// nextRetry is when the next failed key is due; zero when none is.
func (t *Table[K, V]) nextRetry() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	var next time.Time
	for k := range t.dirty {
		if f := t.failed[k]; f != nil && (next.IsZero() || f.retry.Before(next)) {
			next = f.retry
		}
	}
	return next
}

func resultOf(errs []error, i int) error {
	if i < len(errs) {
		return errs[i]
	}
	return nil
}
