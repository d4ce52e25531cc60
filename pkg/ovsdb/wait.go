package ovsdb

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ovn-org/libovsdb/ovsdb"
)

// Wait makes the transaction fail with ErrConflict unless the named columns of
// the row with row's UUID are as in row. It guards what was computed from them.
func Wait(row Row, columns ...string) Operation {
	return Operation{op: ovsdb.OperationWait, table: row.OVSDBTable(), uuid: row.GetUUID(), row: row, columns: columns}
}

// WaitExists makes the transaction fail with ErrConflict unless the row is there.
func WaitExists(table, uuid string) Operation {
	return Operation{op: ovsdb.OperationWait, table: table, uuid: uuid}
}

// WaitNone makes the transaction fail with ErrConflict if a row matches all the clauses, at least
// one. All alone waits for an empty table.
func WaitNone(table string, clauses ...Clause) Operation {
	return WaitRows(table, nil, nil, clauses...)
}

// WaitRows makes the transaction fail with ErrConflict unless the rows that match all the clauses,
// at least one, are these and no other ones, with the named columns as they are in them.
func WaitRows(table string, rows []Row, columns []string, clauses ...Clause) Operation {
	o := Operation{op: ovsdb.OperationWait, table: table, rows: rows, columns: columns, exact: true}
	return o.Where(clauses...)
}

// encodeWait writes what is waited for: no time, the rows are so or they are not. Rows that
// are known by their UUIDs have these among the columns.
func (o Operation) encodeWait(w *wireOperation, t *table, schema *serverSchema) error {
	rows := o.rows
	if !o.exact {
		rows = []Row{o.row} // nil: WaitExists
	}
	columns := o.columns
	if o.exact || o.row == nil {
		columns = append(slices.Clone(columns), "_uuid")
	}
	w.Until, w.Timeout, w.Rows, w.Columns = "==", new(int), &[]rawRow{}, []string{}
	for _, name := range columns {
		if name == "_uuid" || schema.has(t.name, name) || !slices.Contains(o.optional, name) {
			w.Columns = append(w.Columns, name)
		}
	}
	for _, row := range rows {
		raw := rawRow{}
		if row != nil {
			var err error
			if raw, err = t.encodeRow(Operation{op: o.op, table: o.table, row: row, columns: o.columns, optional: o.optional}, schema); err != nil {
				return err
			}
		}
		if slices.Contains(columns, "_uuid") {
			uuid := o.uuid
			if o.exact {
				uuid = row.GetUUID()
			}
			raw["_uuid"] = json.RawMessage(encodeAtom(UUID(uuid)))
		}
		*w.Rows = append(*w.Rows, raw)
	}
	if len(w.Columns) == 0 {
		return fmt.Errorf("wait in table %s names no column that the server has", t.name)
	}
	return nil
}
