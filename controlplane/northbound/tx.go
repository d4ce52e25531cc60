package northbound

import (
	"cmp"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
)

// NewUUID is the UUID of a row that is to be inserted.
func NewUUID() string { return uuid.NewString() }

var database = nb.Database()

// Tx is one transaction under way: what it has read of its snapshot, and what it is to write. It
// sees its own writes.
type Tx struct {
	// Again tells that the outcome of an earlier call for the same transaction is not known, or that
	// a row is there which an earlier call has inserted: what is found may be its work.
	Again bool

	snapshot *Snapshot
	got      map[rowKey]columnSet
	found    map[question]columnSet
	// rows are those that the transaction has written, as they are with it; nil is deleted.
	rows map[rowKey]ovsdb.Row
}

type rowKey struct{ table, uuid string }

// question is one that was put to an index.
type question struct {
	ix  *index
	key string
}

type columnSet map[string]struct{}

func (c columnSet) add(columns []string) {
	for _, name := range columns {
		c[name] = struct{}{}
	}
}

func (c columnSet) list() []string { return slices.Sorted(maps.Keys(c)) }

func newTx(s *Snapshot) *Tx {
	return &Tx{snapshot: s, got: map[rowKey]columnSet{}, found: map[question]columnSet{}, rows: map[rowKey]ovsdb.Row{}}
}

// read records in a set of guards what is read.
func read[K comparable](guards map[K]columnSet, key K, columns []string) {
	if guards[key] == nil {
		guards[key] = columnSet{}
	}
	guards[key].add(columns)
}

// now is a row as it is with the transaction's writes.
func (tx *Tx) now(k rowKey) ovsdb.Row {
	if row, written := tx.rows[k]; written {
		return row
	}
	return tx.snapshot.peek(k.table, k.uuid)
}

func (tx *Tx) peek(table, uuid string) ovsdb.Row { return tx.now(rowKey{table, uuid}) }

func (tx *Tx) get(table, uuid string, columns []string) ovsdb.Row {
	k := rowKey{table, uuid}
	read(tx.got, k, columns)
	row := tx.now(k)
	if row == nil {
		return nil
	}
	return database.Project(row, columns...)
}

func (tx *Tx) find(ix *index, key string, columns []string) (rows []ovsdb.Row) {
	found := map[string]ovsdb.Row{}
	for _, row := range tx.snapshot.find(ix, key, nil) {
		found[row.GetUUID()] = row
	}
	switch {
	case ix.clause == nil:
		tx.guard(found, columns)
	case ix.unique && len(found) == 1:
		tx.guard(found, append(slices.Clone(columns), ix.column))
	default:
		read(tx.found, question{ix, key}, columns)
	}
	for k, row := range tx.rows {
		if k.table != ix.table {
			continue
		}
		delete(found, k.uuid)
		if row != nil && slices.Contains(ix.keys(row), key) {
			found[k.uuid] = row
		}
	}
	for _, uuid := range slices.Sorted(maps.Keys(found)) {
		rows = append(rows, database.Project(found[uuid], columns...))
	}
	return rows
}

// guard records rows of the snapshot, by UUID, one by one.
func (tx *Tx) guard(rows map[string]ovsdb.Row, columns []string) {
	for uuid, row := range rows {
		read(tx.got, rowKey{row.OVSDBTable(), uuid}, columns)
	}
}

// Insert adds a row, with its UUID.
func (tx *Tx) Insert(row ovsdb.Row) {
	tx.rows[rowKey{row.OVSDBTable(), row.GetUUID()}] = row.CloneModel().(ovsdb.Row)
}

// Update gives a row's named columns the values that they have in row. Sets and maps change by
// what differs from the snapshot: members and keys that others add meanwhile stay.
func (tx *Tx) Update(row ovsdb.Row, columns ...string) {
	k := rowKey{row.OVSDBTable(), row.GetUUID()}
	if now := tx.now(k); now != nil {
		tx.rows[k] = database.With(now, row, columns...)
	}
}

// Delete removes a row, if it is there.
func (tx *Tx) Delete(row ovsdb.Row) {
	if k := (rowKey{row.OVSDBTable(), row.GetUUID()}); tx.now(k) != nil {
		tx.rows[k] = nil
	}
}

// inserts adds the rows that the transaction inserts.
func (tx *Tx) inserts(to map[rowKey]bool) {
	for k, row := range tx.rows {
		if row != nil && tx.snapshot.peek(k.table, k.uuid) == nil {
			to[k] = true
		}
	}
}

func (tx *Tx) writes() (ops []ovsdb.Operation) {
	var updates, deletes []ovsdb.Operation
	for _, k := range sorted(maps.Keys(tx.rows), compareRows) {
		before, after := tx.snapshot.peek(k.table, k.uuid), tx.rows[k]
		switch {
		case before == nil && after != nil:
			ops = append(ops, ovsdb.InsertAs(after))
		case before != nil && after != nil:
			updates = append(updates, database.Difference(before, after)...)
		case before != nil:
			deletes = append(deletes, ovsdb.Delete(k.table, k.uuid))
		}
	}
	return slices.Concat(ops, updates, deletes)
}

// waits are the guards. A column that the server lacks reads as empty, and guards nothing.
func (tx *Tx) waits() (ops []ovsdb.Operation) {
	for _, k := range sorted(maps.Keys(tx.got), compareRows) {
		columns := tx.got[k].list()
		switch row := tx.snapshot.peek(k.table, k.uuid); {
		case row == nil:
			ops = append(ops, ovsdb.WaitNone(k.table, ovsdb.Equal("_uuid", ovsdb.UUID(k.uuid))))
		default:
			same := []ovsdb.Row{row}
			ops = append(ops, ovsdb.WaitRows(k.table, same, columns, ovsdb.Equal("_uuid", ovsdb.UUID(k.uuid))).Optional(columns...))
		}
	}
	for _, q := range sorted(maps.Keys(tx.found), compareQuestions) {
		columns := tx.found[q].list()
		rows := tx.snapshot.find(q.ix, q.key, nil)
		ops = append(ops, ovsdb.WaitRows(q.ix.table, rows, columns, q.ix.clause(q.key)).Optional(columns...))
	}
	return ops
}

func sorted[K any](keys func(yield func(K) bool), compare func(a, b K) int) []K {
	return slices.SortedFunc(keys, compare)
}

func compareRows(a, b rowKey) int {
	return cmp.Or(cmp.Compare(a.table, b.table), cmp.Compare(a.uuid, b.uuid))
}

func compareQuestions(a, b question) int {
	return cmp.Or(cmp.Compare(a.ix.table, b.ix.table), cmp.Compare(a.ix.column, b.ix.column), cmp.Compare(a.key, b.key))
}
