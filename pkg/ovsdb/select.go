package ovsdb

import (
	"fmt"
	"slices"

	"github.com/ovn-org/libovsdb/ovsdb"
)

// Select reads the named columns of the rows that match all clauses, at least one,
// RFC 7047 section 5.2.2. It is for a question that is asked now and then; what is
// needed all the time is followed.
func Select(table string, columns []string, where ...Clause) Operation {
	return Operation{op: ovsdb.OperationSelect, table: table, columns: columns}.Where(where...)
}

func (t *table) encodeSelect(o Operation, w *wireOperation, schema *serverSchema) error {
	if slices.Contains(o.where, All()) {
		return fmt.Errorf("select from table %s: all rows are too many", t.name)
	}
	w.Columns = []string{"_uuid"}
	for _, name := range o.columns {
		if _, known := t.columns[name]; !known || !schema.has(t.name, name) {
			return lacks(t.name, name)
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
