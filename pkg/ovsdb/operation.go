package ovsdb

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/ovn-org/libovsdb/ovsdb"
)

// Operation is one step of a transaction, RFC 7047 section 5.2. Make it with the
// functions of this file. What is wrong with it Transact says.
type Operation struct {
	op, table string
	// uuid is the row that it is about; empty for inserts.
	uuid string
	// row and columns: what is written, or waited for.
	row     Row
	columns []string
	name    string // named-uuid of an insert
	// mutations of one column.
	column    string
	mutations []mutation
	text      string   // of a comment
	where     []Clause // of a select
}

// mutation is a <mutation> of RFC 7047 section 5.1.
type mutation struct {
	mutator ovsdb.Mutator
	value   json.RawMessage
	// keys: value is a set of map keys, not a map.
	keys bool
}

// Insert adds a row. Its UUID is ignored: the server makes one, and Result has it.
// Without columns, those that are not zero are written. Other operations of the
// transaction refer to the row by name where a UUID belongs, if name is not empty;
// it must look like a C identifier.
func Insert(row Row, name string, columns ...string) Operation {
	return Operation{op: ovsdb.OperationInsert, table: row.OVSDBTable(), row: row, name: name, columns: columns}
}

// Update writes the named columns, at least one, of the row with row's UUID.
func Update(row Row, columns ...string) Operation {
	return Operation{op: ovsdb.OperationUpdate, table: row.OVSDBTable(), uuid: row.GetUUID(), row: row, columns: columns}
}

// Wait makes the transaction fail with "timed out" unless the named columns of
// the row with row's UUID are as in row. It guards what was computed from them.
func Wait(row Row, columns ...string) Operation {
	return Operation{op: ovsdb.OperationWait, table: row.OVSDBTable(), uuid: row.GetUUID(), row: row, columns: columns}
}

// Delete removes a row. A row that is not there is no error.
func Delete(table, uuid string) Operation {
	return Operation{op: ovsdb.OperationDelete, table: table, uuid: uuid}
}

// SetKeys sets keys of a map column (of strings to strings) and leaves the others.
func SetKeys(table, uuid, column string, pairs map[string]string) Operation {
	wire := make([][2]string, 0, len(pairs))
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		wire = append(wire, [2]string{key, pairs[key]})
	}
	// RFC 7047 section 5.1: inserting a key that is there changes nothing.
	op := DeleteKeys(table, uuid, column, slices.Sorted(maps.Keys(pairs))...)
	op.mutations = append(op.mutations, mutation{ovsdb.MutateOperationInsert, tag("map", wire), false})
	return op
}

// DeleteKeys removes keys of a map column and leaves the others.
func DeleteKeys(table, uuid, column string, keys ...string) Operation {
	if keys == nil {
		keys = []string{}
	}
	return mutate(table, uuid, column, mutation{ovsdb.MutateOperationDelete, tag("set", keys), true})
}

// AddMembers adds to a set column. A UUID that is none is the name of a row that the same
// transaction inserts.
func AddMembers[A Atom](table, uuid, column string, members ...A) Operation {
	return mutate(table, uuid, column, mutation{ovsdb.MutateOperationInsert, atomSet(members), false})
}

// RemoveMembers removes from a set column.
func RemoveMembers[A Atom](table, uuid, column string, members ...A) Operation {
	return mutate(table, uuid, column, mutation{ovsdb.MutateOperationDelete, atomSet(members), false})
}

// Comment goes into the server's log of the transaction.
func Comment(text string) Operation {
	return Operation{op: ovsdb.OperationComment, text: text}
}

func mutate(table, uuid, column string, m mutation) Operation {
	return Operation{op: ovsdb.OperationMutate, table: table, uuid: uuid, column: column, mutations: []mutation{m}}
}

// tag writes ["tag", value]; strings always marshal.
func tag(name string, value any) json.RawMessage {
	raw, err := json.Marshal([]any{name, value})
	if err != nil {
		return nil // refused by encode
	}
	return raw
}

func atomSet[A Atom](members []A) json.RawMessage {
	atoms := make([]json.RawMessage, len(members))
	for i, m := range members {
		atoms[i] = json.RawMessage(encodeAtom(m))
		if u, ok := any(m).(UUID); ok && !u.Valid() {
			atoms[i] = tag("named-uuid", string(u))
		}
	}
	return tag("set", atoms)
}

// wireOperation is an <operation> as it is sent.
type wireOperation struct {
	Op        string    `json:"op"`
	Table     string    `json:"table,omitempty"`
	Where     *[]Clause `json:"where,omitempty"`
	Row       *rawRow   `json:"row,omitempty"`
	Rows      []rawRow  `json:"rows,omitempty"`
	Columns   []string  `json:"columns,omitempty"`
	Mutations [][3]any  `json:"mutations,omitempty"`
	Until     string    `json:"until,omitempty"`
	Timeout   *int      `json:"timeout,omitempty"`
	UUIDName  string    `json:"uuid-name,omitempty"`
	Comment   string    `json:"comment,omitempty"`
}

// encode checks the operation against both schemas.
func (o Operation) encode(db *Database, schema *serverSchema) (wireOperation, error) {
	w := wireOperation{Op: o.op, Table: o.table, Comment: o.text, UUIDName: o.name}
	if o.op == ovsdb.OperationComment {
		return w, nil
	}
	t, ok := db.tables[o.table]
	if !ok || !schema.has(o.table, "") {
		return w, fmt.Errorf("the database has no table %s", o.table)
	}
	where := []Clause{}
	switch {
	case o.op == ovsdb.OperationInsert:
	case o.op == ovsdb.OperationSelect:
		where = append(where, o.where...)
	case !ovsdb.IsValidUUID(o.uuid):
		return w, fmt.Errorf("table %s: %q is not a row's UUID", o.table, o.uuid)
	default:
		where = append(where, Equal("_uuid", UUID(o.uuid)))
	}
	if o.op != ovsdb.OperationInsert {
		w.Where = &where
	}
	return w, o.encodeBody(&w, t, schema)
}

func (o Operation) encodeBody(w *wireOperation, t *table, schema *serverSchema) error {
	switch o.op {
	case ovsdb.OperationSelect:
		return t.encodeSelect(o, w, schema)
	case ovsdb.OperationInsert, ovsdb.OperationUpdate, ovsdb.OperationWait:
		row, err := t.encodeRow(o, schema)
		if err != nil {
			return err
		}
		if o.op != ovsdb.OperationWait {
			w.Row = &row
			return nil
		}
		w.Rows, w.Columns, w.Until, w.Timeout = []rawRow{row}, o.columns, "==", new(int)
	case ovsdb.OperationMutate:
		if !schema.has(o.table, o.column) {
			return fmt.Errorf("the server's table %s has no column %s", o.table, o.column)
		}
		for _, m := range o.mutations {
			if m.value == nil {
				return fmt.Errorf("table %s, column %s: no value to %s", o.table, o.column, m.mutator)
			}
			w.Mutations = append(w.Mutations, [3]any{o.column, m.mutator, m.value})
		}
	}
	return nil
}

func (t *table) encodeRow(o Operation, schema *serverSchema) (rawRow, error) {
	v := reflect.ValueOf(o.row).Elem()
	if v.Type() != t.typ {
		return nil, fmt.Errorf("table %s: row of type %s", t.name, v.Type())
	}
	columns := o.columns
	if len(columns) == 0 {
		if o.op != ovsdb.OperationInsert {
			return nil, fmt.Errorf("%s in table %s names no column", o.op, t.name)
		}
		for name, c := range t.columns {
			if !v.Field(c.field).IsZero() {
				columns = append(columns, name)
			}
		}
	}
	row := make(rawRow, len(columns))
	for _, name := range columns {
		c, ok := t.columns[name]
		if !ok || !schema.has(t.name, name) {
			return nil, fmt.Errorf("the server's table %s has no column %s", t.name, name)
		}
		value, err := c.encode(v.Field(c.field))
		if err != nil {
			return nil, fmt.Errorf("table %s, column %s: %w", t.name, name, err)
		}
		row[name] = value
	}
	return row, nil
}

// encode is the opposite of decode.
func (c column) encode(field reflect.Value) (json.RawMessage, error) {
	switch c.typ.Kind() {
	case reflect.Map:
		pairs := make([][2]any, 0, field.Len())
		for iter := field.MapRange(); iter.Next(); {
			pairs = append(pairs, [2]any{wireAtom(iter.Key(), c.uuidKey), wireAtom(iter.Value(), c.uuidValue)})
		}
		return json.Marshal([]any{"map", pairs})
	case reflect.Slice:
		atoms := make([]any, field.Len())
		for i := range atoms {
			atoms[i] = wireAtom(field.Index(i), c.uuidKey)
		}
		return json.Marshal([]any{"set", atoms})
	case reflect.Pointer:
		if field.IsNil() {
			return json.RawMessage(`["set",[]]`), nil
		}
		return json.Marshal(wireAtom(field.Elem(), c.uuidKey))
	default:
		return json.Marshal(wireAtom(field, c.uuidKey))
	}
}

// wireAtom marshals to an <atom>; libovsdb's UUID writes a string that is no UUID
// as the name of a row inserted in the same transaction.
func wireAtom(v reflect.Value, uuid bool) any {
	if uuid {
		return ovsdb.UUID{GoUUID: v.String()}
	}
	return v.Interface()
}

// checkClause tells whether a clause's value fits its column.
func (t *table) checkClause(clause Clause) error {
	raw := json.RawMessage(clause.value)
	if clause.column == "_uuid" {
		return checkAtom(reflect.TypeFor[string](), raw, true)
	}
	c, ok := t.columns[clause.column]
	if !ok {
		if clause.column == "" {
			return nil
		}
		return fmt.Errorf("there is no column %s", clause.column)
	}
	switch c.typ.Kind() {
	case reflect.Map:
		return c.decodeMap(reflect.New(c.typ).Elem(), raw)
	case reflect.Slice, reflect.Pointer:
		return checkAtom(c.typ.Elem(), raw, c.uuidKey)
	default:
		return checkAtom(c.typ, raw, c.uuidKey)
	}
}

func checkAtom(typ reflect.Type, raw json.RawMessage, uuid bool) error {
	v := reflect.New(typ)
	if err := decodeAtom(v, raw, uuid); err != nil {
		return err
	}
	if uuid {
		return ovsdb.ValidateUUID(v.Elem().String())
	}
	return nil
}
