package ovsdb

import (
	"fmt"

	"github.com/ovn-org/libovsdb/ovsdb"
)

// Select reads the named columns of the rows that match all clauses, at least one,
// RFC 7047 section 5.2.2. It is for a question that is asked now and then; what is
// needed all the time is followed.
func Select(table string, columns []string, where ...Clause) Operation {
	return Operation{op: ovsdb.OperationSelect, table: table, columns: columns, where: where}
}

func (t *table) encodeSelect(o Operation, w *wireOperation, schema *serverSchema) error {
	if len(o.where) == 0 {
		return fmt.Errorf("select from table %s has no clause", t.name)
	}
	for _, c := range o.where {
		if c.column == "" {
			return fmt.Errorf("select from table %s: all rows are too many", t.name)
		}
		if err := t.checkClause(c); err != nil {
			return fmt.Errorf("select from table %s, clause %s: %w", t.name, c, err)
		}
		if c.column != "_uuid" && !schema.has(t.name, c.column) {
			return fmt.Errorf("the server's table %s has no column %s", t.name, c.column)
		}
	}
	w.Columns = []string{"_uuid"}
	for _, name := range o.columns {
		if _, known := t.columns[name]; !known || !schema.has(t.name, name) {
			return fmt.Errorf("the server's table %s has no column %s", t.name, name)
		}
		w.Columns = append(w.Columns, name)
	}
	return nil
}

// selected is a row of a select's result.
func (d *Database) selected(table string, raw rawRow) (Row, error) {
	t, ok := d.tables[table]
	if !ok {
		return nil, protocolError("rows of table %s where none belong", table)
	}
	uuid, err := decodeUUID(raw["_uuid"])
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", table, err)
	}
	return t.fresh(uuid, raw)
}
