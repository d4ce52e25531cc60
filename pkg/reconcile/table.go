package reconcile

import (
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"
)

// TableOptions tune a table. The zero value is usable.
type TableOptions[K, V comparable] struct {
	// Gate, when set, is asked before a row is added and again whenever the key
	// is touched, also while the row is being written. While it returns an error the row
	// counts as not wanted, and the error as its state. It is called with the table's lock
	// held and must not call the table.
	Gate func(K, V) error
	// Await, when set, is asked before a row is written over another, or where there
	// is none: there tells which, and actual is the zero value then. While it
	// returns an error what is there stays as it is, and the error is the row's
	// state: it wraps ErrNotReady. It is asked again when the key is touched, and as
	// a failed one is. Of a row that may be there, see Table.MayBeLocked, it is asked for
	// each value that this may have. Called as Gate.
	Await func(key K, wanted, actual V, there bool) error
	// Hold, when set and true for a row that is no longer wanted, keeps the row:
	// its source is not in sync, so its absence means nothing. It is not asked for
	// a row that the gate keeps out. A row that may be there is kept when one of its
	// values is. Called as Gate.
	Hold func(K, V) bool
	// Linger, when set and true for a row that is there and no longer wanted, has it count
	// as wanted, as it is: something uses it that no table shows, and nothing is amiss. It
	// is asked when the row would be removed, also of rows that were found and never
	// wanted, and in each pass from then on. A row that may be there lingers as the first
	// of its values that does. Called as Gate.
	Linger func(K, V) bool
	// Early, when set, tells which rows are added and removed at the place of Table.Early
	// in the pipeline, and not at the table's own.
	Early func(K) bool
	// Behind, when set, returns what tells whether a row that comes, or goes, waits for the
	// rows of a table, which come before it and have had no turn: that table's driver has not
	// returned or cannot read it back, or they wait themselves. It may be the row's own table. Of a row that may be
	// there it is asked for each value that this may have. nil: it waits. Called as Gate.
	Behind func(late Stage, goes bool) func(K, V) bool
	// Observe, when set, is told after a pass about every key that it changed or
	// failed on. It may touch other tables. No lock is held. Tables are observed at the
	// same time, and so is one that has a place of Early beside its own.
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

	in   *Pipeline
	mu   *sync.Mutex // the pipeline's, shared by its tables
	turn turn
	// place and earlyPlace are those of the table and of Early in the pipeline.
	place, earlyPlace int
	rows              sides[K, V]
	// dirty are the keys that may differ; the rest is known to be equal. true: touched since the
	// key was looked at, so what was decided then does not count any more.
	dirty     map[K]bool
	failed    map[K]*failure
	unready   map[K]unready  // rows that wait, also since before they were touched
	spared    map[K]struct{} // keys whose removal was put off in the last pass
	late      map[K]struct{} // wanted by Linger alone
	waits     map[K]Stage    // rows that wait by Behind, and the table whose driver they wait for
	passBegun time.Time      // when the last pass began
	// flight are the rows of the call that runs, as they are to be; nil in a deletion.
	flight map[K]*V
	listed bool  // the actual side need not be read back
	known  bool  // it has been read back once: what it says counts, even while reading again fails
	told   bool  // the wanted side was set once: before, that a row is missing means nothing
	ops    Stats // the counters only
	listNo int   // counts Relist calls, so that one that comes during a List is not lost
}

type failure struct {
	err      error
	attempts int
	tried    time.Time
	retry    time.Time
}

// retryAfterRelist is after how long at least a key that has failed is tried again when
// something else has changed: that may be what it waited for, or what trying it does.
const retryAfterRelist = time.Second

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
	alone := NewPipeline(PipelineOptions{Log: slog.New(slog.DiscardHandler)})
	return &Table[K, V]{
		name: name, driver: driver, opts: opts, now: time.Now, in: alone, mu: &alone.mu,
		rows: newSides[K, V](), dirty: map[K]bool{}, failed: map[K]*failure{}, unready: map[K]unready{}, spared: map[K]struct{}{}, late: map[K]struct{}{}, waits: map[K]Stage{},
	}
}

// Name is the table's name in status, metrics and logs.
func (t *Table[K, V]) Name() string { return t.name }

// Set replaces the whole wanted side. Until the first Set nothing is deleted: the
// table was not told yet what is wanted. Call it inside Pipeline.Update.
func (t *Table[K, V]) Set(wanted map[K]V) {
	t.told = true
	for k := range t.rows.want {
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

// Relist has the actual side read back in the next pass, and what has failed tried again
// soon: somebody else has changed something. Call it inside Pipeline.Update.
func (t *Table[K, V]) Relist() {
	t.listed = false
	t.listNo++
	for _, f := range t.failed {
		if soon := f.tried.Add(retryAfterRelist); soon.Before(f.retry) {
			f.retry = soon
		}
	}
}

// TouchWhere is Touch for the wanted rows that match. Call it inside
// Pipeline.Update.
func (t *Table[K, V]) TouchWhere(match func(K, V) bool) {
	for k, w := range t.rows.want {
		if match(k, w.value) {
			t.touch(k)
		}
	}
}

// EachUnwantedLocked calls each for every row that is there and not wanted, and for every
// value of one that may be there, inside an update of the pipeline, or a Hold or Linger of
// it. each may not change this table.
func (t *Table[K, V]) EachUnwantedLocked(each func(K, V)) {
	for k, v := range t.rows.other {
		if !t.WantedLocked(k) {
			each(k, v)
		}
	}
	for k, values := range t.rows.unknown {
		for _, v := range values {
			if !t.WantedLocked(k) {
				each(k, v)
			}
		}
	}
}

func (t *Table[K, V]) want(k K, v V) {
	delete(t.late, k)
	if old, ok := t.rows.wanted(k); ok && old == v {
		return
	}
	t.rows.setWanted(k, v)
	t.touch(k)
}

func (t *Table[K, V]) remove(k K) {
	delete(t.late, k)
	delete(t.unready, k)
	if _, ok := t.rows.wanted(k); ok {
		t.rows.unwant(k)
		t.touch(k)
	}
}

func (t *Table[K, V]) touch(k K) {
	t.dirty[k] = true
	delete(t.failed, k)
}

// State tells how a key stands: programmed, or why not.
func (t *Table[K, V]) State(k K) (programmed bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state(k)
}

// StateLocked is State for use inside a Gate of the same pipeline, and ProgrammedLocked the
// first half of it.
func (t *Table[K, V]) StateLocked(k K) (programmed bool, err error) { return t.state(k) }

// ProgrammedLocked tells whether a wanted row is in place. See StateLocked.
func (t *Table[K, V]) ProgrammedLocked(k K) bool { ok, _ := t.state(k); return ok }

// WantedLocked tells whether a row is wanted, for use inside a Gate or Hold of
// the same pipeline.
func (t *Table[K, V]) WantedLocked(k K) bool { _, ok := t.rows.wanted(k); return ok }

// LookupLocked is Wanted for use inside a Gate or Hold of the same pipeline.
func (t *Table[K, V]) LookupLocked(k K) (V, bool) { return t.rows.wanted(k) }

// ActualLocked is what is known to be there, for use inside a Gate, Await or Hold of the
// same pipeline, or an update.
func (t *Table[K, V]) ActualLocked(k K) (V, bool) { return t.actual(k) }

// MayBeLocked tells whether a row that matches is there, or may be there: a call of the
// driver runs, or has failed, that is to write or to delete it. It is for whoever must not
// act as long as such a row does. See ActualLocked.
func (t *Table[K, V]) MayBeLocked(k K, match func(V) bool) bool {
	if slices.ContainsFunc(t.rows.possible(k), match) {
		return true
	}
	tried := t.flight[k]
	return tried != nil && match(*tried)
}

// RewrittenLocked tells whether a wanted row that is known to have been there is being written,
// or waits for that: its table has had no turn in this pass, or none yet. A write leaves no
// gap, so what relies on the row may do so still. Of a table that cannot be read back that is
// not known. was is what was there. See ActualLocked.
func (t *Table[K, V]) RewrittenLocked(k K) (was V, yes bool) {
	was, there := t.rows.actual(k)
	if !there || !t.known || !t.WantedLocked(k) {
		return was, false
	}
	if to, runs := t.flight[k]; runs {
		return was, to != nil
	}
	var inexpressible V // by List
	return was, was != inexpressible && t.failed[k] == nil && (t.turn.missed || t.turn.done != nil)
}

// KnownLocked is Known for use inside a Gate, Await or Hold of the same pipeline.
func (t *Table[K, V]) KnownLocked() bool { return t.known }

// EachLocked calls each for every wanted row, inside an update of the pipeline.
// each may not change this table.
func (t *Table[K, V]) EachLocked(each func(K, V)) {
	for k, w := range t.rows.want {
		each(k, w.value)
	}
}

// UnplacedLocked finds a wanted row that matches and is not in place. It looks only
// at rows that may differ, which are few. For use as ProgrammedLocked.
func (t *Table[K, V]) UnplacedLocked(match func(K, V) bool) (k K, found bool) {
	for k := range t.dirty {
		if w, ok := t.rows.wanted(k); ok && match(k, w) && !t.ProgrammedLocked(k) {
			return k, true
		}
	}
	return k, false
}

// Known tells whether the actual side has been read back at least once.
func (t *Table[K, V]) Known() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known
}

func (t *Table[K, V]) state(k K) (bool, error) {
	w, ok := t.rows.wanted(k)
	if !ok {
		return false, nil
	}
	if f := t.failed[k]; f != nil {
		return false, f.err
	}
	if a, ok := t.actual(k); t.known && ok && a == w {
		return true, nil
	}
	return false, t.awaitsTurn(k)
}

// actual is what is known to be there: nothing is of a row that is being written or deleted.
func (t *Table[K, V]) actual(k K) (v V, there bool) {
	if _, flies := t.flight[k]; flies {
		return v, false
	}
	return t.rows.actual(k)
}

// Settled tells whether the actual side has been read back and every wanted row
// is in place, or failed and does not wait for anything.
func (t *Table[K, V]) Settled() bool { return t.waiting(1) == 0 }

// Waiting implements Stage.
func (t *Table[K, V]) Waiting() int { return t.waiting(math.MaxInt) }

// waiting counts up to most wanted rows that wait; all do before the actual side has
// been read back, and one does for that.
func (t *Table[K, V]) waiting(most int) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.known {
		return 1 + len(t.rows.want)
	}
	for k := range t.rows.want {
		if ok, err := t.state(k); !ok && errors.Is(err, ErrNotReady) {
			n++
		}
		if n == most {
			break
		}
	}
	return n
}

// Rows copies both sides, for status and diff.
func (t *Table[K, V]) Rows() (wanted, actual map[K]V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rows.copies()
}

// Wanted returns one wanted row.
func (t *Table[K, V]) Wanted(k K) (V, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rows.wanted(k)
}
