package northbound

import (
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/btree"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

// Snapshot is the content of the database at one moment. It does not change, and its rows are
// read-only.
type Snapshot struct {
	tables map[string]content
	memos  sync.Map // see Memo
}

// content is a table. Its trees share all nodes with those of the snapshot before but the ones
// that differ.
type content struct {
	rows    *btree.Map[string, ovsdb.Row]
	indices map[*index]*btree.Map[string, struct{}] // key, a zero byte, and UUID
}

const keyEnd = "\x00"

func newContent(table string) content {
	c := content{rows: new(btree.Map[string, ovsdb.Row]), indices: map[*index]*btree.Map[string, struct{}]{}}
	for _, ix := range declared[table] {
		c.indices[ix] = new(btree.Map[string, struct{}])
	}
	return c
}

func (c content) copy() content {
	out := content{rows: c.rows.Copy(), indices: make(map[*index]*btree.Map[string, struct{}], len(c.indices))}
	for ix, tree := range c.indices {
		out.indices[ix] = tree.Copy()
	}
	return out
}

func (c content) change(uuid string, before, after ovsdb.Row) {
	if after == nil {
		c.rows.Delete(uuid)
	} else {
		c.rows.Set(uuid, after)
	}
	for ix, tree := range c.indices {
		var old, now []string
		if before != nil {
			old = ix.keys(before)
		}
		if after != nil {
			now = ix.keys(after)
		}
		if slices.Equal(old, now) {
			continue
		}
		for _, key := range missing(old, now) {
			tree.Delete(key + keyEnd + uuid)
		}
		for _, key := range missing(now, old) {
			tree.Set(key+keyEnd+uuid, struct{}{})
		}
	}
}

// missing are the members of a that b has not. Rows of switches have thousands of keys, others a few.
func missing(a, b []string) (out []string) {
	in := make(map[string]struct{}, len(b))
	for _, key := range b {
		in[key] = struct{}{}
	}
	for _, key := range a {
		if _, has := in[key]; !has {
			out = append(out, key)
		}
	}
	return out
}

// with is the snapshot after changes.
func (s *Snapshot) with(changes []ovsdb.Change) *Snapshot {
	next := &Snapshot{tables: make(map[string]content, len(s.tables))}
	for name, c := range s.tables {
		next.tables[name] = c
	}
	fresh := map[string]bool{}
	for _, change := range changes {
		if !fresh[change.Table] {
			fresh[change.Table] = true
			next.tables[change.Table] = s.table(change.Table).copy()
		}
		next.tables[change.Table].change(change.UUID, change.Old, change.New)
	}
	return next
}

func (s *Snapshot) table(name string) content {
	if c, ok := s.tables[name]; ok {
		return c
	}
	return newContent(name)
}

func (s *Snapshot) get(table, uuid string, _ []string) ovsdb.Row { return s.peek(table, uuid) }

func (s *Snapshot) peek(table, uuid string) ovsdb.Row {
	row, _ := s.table(table).rows.Get(uuid)
	return row
}

func (s *Snapshot) find(ix *index, key string, _ []string) (rows []ovsdb.Row) {
	t := s.table(ix.table)
	t.indices[ix].Ascend(key+keyEnd, func(k string, _ struct{}) bool {
		uuid, is := strings.CutPrefix(k, key+keyEnd)
		if !is {
			return false
		}
		if row, there := t.rows.Get(uuid); there {
			rows = append(rows, row)
		}
		return true
	})
	return slices.Clip(rows)
}

// hasOne tells whether one of the rows is there.
func (s *Snapshot) hasOne(rows map[rowKey]bool) bool {
	for k := range rows {
		if s.peek(k.table, k.uuid) != nil {
			return true
		}
	}
	return false
}

// Len is how many rows a table has.
func (s *Snapshot) Len(table string) int { return s.table(table).rows.Len() }
