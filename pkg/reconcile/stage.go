package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Stats counts a table's rows.
type Stats struct {
	Wanted  int // rows that are wanted
	Late    int // those of them that nobody asks for any more: see TableOptions.Linger
	Actual  int // rows that are there
	Unknown int // rows that may be there: a call of the driver has failed
	Pending int // rows that may differ and wait for their turn, their gate or their source
	Failed  int // rows whose last attempt failed
	// Operations since the start.
	Applied, ApplyErrors, Deleted, DeleteErrors uint64
}

// Op is what a pass would do to a row.
type Op string

// The operations of a difference.
const (
	OpAdd    Op = "add"
	OpChange Op = "change"
	OpDelete Op = "delete"
)

// Change is one line of a difference, as text for people.
type Change struct {
	Table string `json:"table"`
	Op    Op     `json:"op"`
	Key   string `json:"key"`
	Old   string `json:"old,omitempty"`
	New   string `json:"new,omitempty"`
	// Held tells that the row stays because its source is not in sync, or is not
	// added because something it needs is missing; Why says what.
	Held bool   `json:"held,omitempty"`
	Why  string `json:"why,omitempty"`
}

// Stats implements Stage.
func (t *Table[K, V]) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.ops
	s.Wanted, s.Late, s.Actual, s.Pending = len(t.rows.want), len(t.late), t.rows.actualLen(), len(t.dirty)
	s.Unknown = len(t.rows.unknown)
	for _, f := range t.failed {
		if !errors.Is(f.err, ErrNotReady) {
			s.Failed++
		}
	}
	return s
}

// Changes implements Stage: the difference as known now, sorted by key.
func (t *Table[K, V]) Changes() []Change {
	t.mu.Lock()
	defer t.mu.Unlock()
	open := maps.Clone(t.dirty)
	for k := range t.failed { // gated rows are settled, and shown all the same
		open[k] = false
	}
	var out []Change
	for k := range open {
		if c, differs := t.change(k); differs {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b Change) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

func (t *Table[K, V]) change(k K) (c Change, differs bool) {
	c = Change{Table: t.name, Key: fmt.Sprint(k)}
	w, want := t.rows.wanted(k)
	a, known := t.rows.actual(k)
	may := t.rows.possible(k)
	_, unknown := t.rows.unknown[k]
	if f := t.failed[k]; f != nil {
		c.Why = f.err.Error()
	} else if late := t.waits[k]; late != nil {
		c.Why = t.awaitsTurn(k).Error()
	}
	gone, gateErr := t.unwanted(k)
	switch {
	case want && known && w == a && !gone:
		return c, false
	case gone && (known || unknown):
		c.Op, c.Old = OpDelete, describeAll(k, may)
		if c.Held = t.held(k, may, gateErr); !c.Held {
			if _, late := t.lingers(k, may, gateErr); late {
				return c, false
			}
		}
	case gone && want:
		c.Op, c.New, c.Held, c.Why = OpAdd, describe(k, w), true, gateErr.Error()
	case gone:
		return c, false
	case known || unknown:
		c.Op, c.Old, c.New = OpChange, describeAll(k, may), describe(k, w)
	default:
		c.Op, c.New = OpAdd, describe(k, w)
	}
	return c, true
}

func (t *Table[K, V]) additionPass(ctx context.Context) { t.add(ctx, false) }

// removalCandidates picks now and removes later. changed tells that the tables
// were changed since the pass began. The pipeline holds the lock.
func (t *Table[K, V]) removalCandidates(changed bool) func(context.Context) {
	return t.removing(changed, false)
}

func (t *Table[K, V]) removing(changed, early bool) func(context.Context) {
	if t.turn.done != nil {
		t.turn.missed, t.turn.waited = true, true
		return func(context.Context) {}
	}
	keys, events := t.removals(changed, early)
	return func(ctx context.Context) {
		t.observe(events)
		t.del(ctx, keys, early)
		t.shrink()
	}
}

// Early is the place in the pipeline of those rows that TableOptions.Early names.
func (t *Table[K, V]) Early() Stage { return early[K, V]{t} }

// early is a part of a table: all but its passes is the table's.
type early[K, V comparable] struct{ *Table[K, V] }

func (early[K, V]) part() bool { return true }

func (e early[K, V]) additionPass(ctx context.Context) { e.add(ctx, true) }

func (e early[K, V]) removalCandidates(changed bool) func(context.Context) {
	return e.removing(changed, true)
}

func (*Table[K, V]) part() bool { return false }

func (t *Table[K, V]) observe(events []Event[K]) {
	if t.opts.Observe != nil && len(events) > 0 {
		t.opts.Observe(events)
	}
}

func (t *Table[K, V]) share(p *Pipeline, place int) {
	t.in, t.mu, t.place = p, &p.mu, place
}

func (e early[K, V]) share(p *Pipeline, place int) { e.in, e.mu, e.earlyPlace = p, &p.mu, place }
func (t *Table[K, V]) relist()                     { t.Relist() }
