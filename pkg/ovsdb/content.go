package ovsdb

import (
	"cmp"
	"slices"
)

type rowKey struct {
	table, uuid string
}

// content is the local copy, with what the handler does not know yet. It survives
// reconnects.
type content struct {
	db   *Database
	rows map[string]map[string]Row
	// before holds, for rows touched since the last flush, what the handler
	// has; nil where it has none.
	before map[rowKey]Row
}

func newContent(db *Database) *content {
	return &content{db: db, rows: make(map[string]map[string]Row), before: make(map[rowKey]Row)}
}

func (c *content) set(table, uuid string, row Row) {
	key := rowKey{table, uuid}
	old, had := c.rows[table][uuid]
	if !had && row == nil {
		return
	}
	if _, touched := c.before[key]; !touched {
		c.before[key] = old
	}
	if row == nil {
		delete(c.rows[table], uuid)
		return
	}
	if c.rows[table] == nil {
		c.rows[table] = make(map[string]Row)
	}
	c.rows[table][uuid] = row
}

// update applies one update message as a whole, or, on an error, leaves the
// content for a full reload.
func (c *content) update(updates tableUpdates) error {
	for name, rows := range updates {
		t, ok := c.db.tables[name]
		if !ok {
			return protocolError("an update of table %s, which was not asked for", name)
		}
		for uuid, u := range rows {
			if err := c.updateRow(t, uuid, u); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *content) updateRow(t *table, uuid string, u *rowUpdate) error {
	if u == nil {
		return protocolError("table %s, row %s: null where an update belongs", t.name, uuid)
	}
	raw := u.Initial
	if raw == nil {
		raw = u.Insert
	}
	switch {
	case u.deleted:
		c.set(t.name, uuid, nil)
	case raw != nil:
		row, err := t.fresh(uuid, *raw)
		if err != nil {
			return err
		}
		c.set(t.name, uuid, row)
	default:
		old, ok := c.rows[t.name][uuid]
		if !ok {
			return protocolError("table %s, row %s: changed by the server but not known here", t.name, uuid)
		}
		row, err := t.modified(old, *u.Modify)
		if err != nil {
			return err
		}
		c.set(t.name, uuid, row)
	}
	return nil
}

// replace makes the updates of a first reply the whole content. Rows that did
// not change stay the same pointers.
func (c *content) replace(updates tableUpdates) error {
	for table, rows := range c.rows {
		for uuid := range rows {
			if _, ok := updates[table][uuid]; !ok {
				c.set(table, uuid, nil)
			}
		}
	}
	return c.update(updates)
}

// flush returns what the handler does not know yet, sorted, and forgets it.
func (c *content) flush() []Change {
	var changes []Change
	for key, old := range c.before {
		now := c.rows[key.table][key.uuid]
		switch {
		case old == nil && now == nil:
			continue
		case old != nil && now != nil && old.EqualsModel(now):
			c.rows[key.table][key.uuid] = old
			continue
		}
		changes = append(changes, Change{Table: key.table, UUID: key.uuid, Old: old, New: now})
	}
	c.before = make(map[rowKey]Row)
	slices.SortFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.UUID, b.UUID))
	})
	return changes
}

// discard takes back what was not flushed: the content is again what the handler
// knows. It is used when a connection is given up in the middle of an update.
func (c *content) discard() {
	for key, old := range c.before {
		if old == nil {
			delete(c.rows[key.table], key.uuid)
		} else {
			c.rows[key.table][key.uuid] = old
		}
	}
	c.before = make(map[rowKey]Row)
}

func (c *content) count() int {
	n := 0
	for _, rows := range c.rows {
		n += len(rows)
	}
	return n
}
