package northbound

import (
	"slices"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

// Trace is a Reader of a snapshot that notes what is read, as a Tx does: rows with the columns that
// are named, and questions to indices. Its rows are the snapshot's own. What is peeked at is not noted.
type Trace struct {
	snapshot *Snapshot
	rows     map[rowKey][]string
	asked    map[question][]string
}

// NewTrace is a Trace of which nothing has been read.
func NewTrace(s *Snapshot) *Trace {
	return &Trace{snapshot: s, rows: map[rowKey][]string{}, asked: map[question][]string{}}
}

func (t *Trace) get(table, uuid string, columns []string) ovsdb.Row {
	k := rowKey{table, uuid}
	t.rows[k] = union(t.rows[k], columns)
	return t.snapshot.peek(table, uuid)
}

func (t *Trace) find(ix *index, key string, columns []string) []ovsdb.Row {
	q := question{ix, key}
	t.asked[q] = union(t.asked[q], columns)
	return t.snapshot.find(ix, key, columns)
}

func (t *Trace) peek(table, uuid string) ovsdb.Row { return t.snapshot.peek(table, uuid) }

// Note has a Trace note columns of a row that are peeked at. A Tx does not guard them.
func Note(from Reader, table, uuid string, columns ...string) {
	if t, is := from.(*Trace); is {
		t.get(table, uuid, columns)
	}
}

// union are the columns of both, never nil.
func union(a, b []string) []string {
	if a == nil {
		return append([]string{}, b...)
	}
	for _, name := range b {
		if !slices.Contains(a, name) {
			a = append(a, name)
		}
	}
	return a
}

// Watch has what readers have read, by their names, and tells which of them have to read again after
// changes. The zero value has no readers.
type Watch[K comparable] struct {
	traces map[K]*Trace
	rows   map[rowKey]map[K][]string
	asked  map[question]map[K][]string
}

// Set has a reader have read what is in a trace, and nothing else.
func (w *Watch[K]) Set(reader K, t *Trace) {
	if w.traces == nil {
		w.traces, w.rows, w.asked = map[K]*Trace{}, map[rowKey]map[K][]string{}, map[question]map[K][]string{}
	}
	w.Drop(reader)
	t.snapshot = nil // else it would stay as long as the reader
	w.traces[reader] = t
	for k, columns := range t.rows {
		note(w.rows, k, reader, columns)
	}
	for q, columns := range t.asked {
		note(w.asked, q, reader, columns)
	}
}

func note[Q, K comparable](into map[Q]map[K][]string, q Q, reader K, columns []string) {
	if into[q] == nil {
		into[q] = map[K][]string{}
	}
	into[q][reader] = columns
}

// Drop forgets a reader.
func (w *Watch[K]) Drop(reader K) {
	t := w.traces[reader]
	if t == nil {
		return
	}
	delete(w.traces, reader)
	for k := range t.rows {
		forget(w.rows, k, reader)
	}
	for q := range t.asked {
		forget(w.asked, q, reader)
	}
}

func forget[Q, K comparable](from map[Q]map[K][]string, q Q, reader K) {
	if delete(from[q], reader); len(from[q]) == 0 {
		delete(from, q)
	}
}

// Touched are the readers that have read what changes have changed: a row in a column that they
// named, or which rows an index has under a key. judge says whether a column differs for readers, and
// is told whether it does.
func (w *Watch[K]) Touched(changes []ovsdb.Change, judge func(c ovsdb.Change, column string, differs bool) bool) map[K]struct{} {
	out := map[K]struct{}{}
	for _, c := range changes {
		d := difference{Change: c, judge: judge, columns: map[string]bool{}}
		touched(out, w.rows[rowKey{c.Table, c.UUID}], &d, c.Old == nil || c.New == nil)
		for _, ix := range declared[c.Table] {
			was, is := keysOf(ix, c.Old), keysOf(ix, c.New)
			for key := range was {
				_, both := is[key]
				touched(out, w.asked[question{ix, key}], &d, !both)
			}
			for key := range is {
				if _, both := was[key]; !both {
					touched(out, w.asked[question{ix, key}], &d, true)
				}
			}
		}
	}
	return out
}

// touched adds the readers of columns that differ, or all.
func touched[K comparable](to map[K]struct{}, readers map[K][]string, d *difference, all bool) {
	for reader, columns := range readers {
		if _, has := to[reader]; !has && (all || slices.ContainsFunc(columns, d.in)) {
			to[reader] = struct{}{}
		}
	}
}

func keysOf(ix *index, row ovsdb.Row) map[string]struct{} {
	if row == nil {
		return nil
	}
	out := map[string]struct{}{}
	for _, key := range ix.keys(row) {
		out[key] = struct{}{}
	}
	return out
}

// difference is a change, with what is known of its columns.
type difference struct {
	ovsdb.Change
	judge   func(c ovsdb.Change, column string, differs bool) bool
	columns map[string]bool
}

// in tells whether a column differs, for readers.
func (d *difference) in(column string) bool {
	differs, known := d.columns[column]
	if !known {
		differs = d.judge(d.Change, column, !database.Project(d.Old, column).EqualsModel(database.Project(d.New, column)))
		d.columns[column] = differs
	}
	return differs
}
