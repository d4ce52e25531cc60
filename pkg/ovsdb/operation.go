package ovsdb

import (
	"encoding/json"
	"errors"
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
	// own is the UUID that an inserted row gets; empty: the server makes one.
	own string
	// lock of an assert.
	lock string
	// rows that a wait is for, if exact: these and no other ones.
	rows  []Row
	exact bool
	// optional are columns that are left out where the server lacks them.
	optional []string
	// row and columns: what is written, or waited for.
	row     Row
	columns []string
	name    string // named-uuid of an insert
	// mutations of one column.
	column    string
	mutations []mutation
	text      string // of a comment
	// where finds the rows in place of uuid: those that match all of these.
	where []Clause
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

// InsertAs is Insert of a row that gets row's own UUID (Open vSwitch 3.0 and later), by which
// other operations of the transaction refer to it. An insert whose outcome is unknown can so be
// repeated: it fails with ErrExists if it was committed.
func InsertAs(row Row, columns ...string) Operation {
	o := Insert(row, "", columns...)
	o.own = row.GetUUID()
	return o
}

// Update writes the named columns, at least one, of the row with row's UUID.
func Update(row Row, columns ...string) Operation {
	return Operation{op: ovsdb.OperationUpdate, table: row.OVSDBTable(), uuid: row.GetUUID(), row: row, columns: columns}
}

// Where makes an Update, Wait, Delete or change of a map or set be about all rows that match all
// the clauses, at least one, in place of the row with a UUID. A wait is then for exactly one row.
func (o Operation) Where(clauses ...Clause) Operation {
	o.uuid, o.where = "", slices.Clone(clauses)
	if o.where == nil {
		o.where = []Clause{}
	}
	return o
}

// Optional names columns that are left out where the server's schema lacks them. Any other one
// that it lacks fails the transaction before it is sent.
func (o Operation) Optional(columns ...string) Operation {
	o.optional = append(slices.Clone(o.optional), columns...)
	return o
}

// Assert makes the transaction fail with ErrNotOwner unless the session's connection holds the
// lock, RFC 7047 section 5.2.10.
func Assert(lock string) Operation { return Operation{op: ovsdb.OperationAssert, lock: lock} }

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
	Rows      *[]rawRow `json:"rows,omitempty"`
	Columns   []string  `json:"columns,omitempty"`
	Mutations [][3]any  `json:"mutations,omitempty"`
	Until     string    `json:"until,omitempty"`
	Timeout   *int      `json:"timeout,omitempty"`
	UUIDName  string    `json:"uuid-name,omitempty"`
	UUID      string    `json:"uuid,omitempty"`
	Lock      string    `json:"lock,omitempty"`
	Comment   string    `json:"comment,omitempty"`
}

// encode checks the operation against both schemas.
func (o Operation) encode(db *Database, schema *serverSchema) (wireOperation, error) {
	w := wireOperation{Op: o.op, Table: o.table, Comment: o.text, UUIDName: o.name, UUID: o.own, Lock: o.lock}
	if o.op == ovsdb.OperationComment || o.op == ovsdb.OperationAssert {
		return w, nil
	}
	t, ok := db.tables[o.table]
	if !ok || !schema.has(o.table, "") {
		return w, fmt.Errorf("the database has no table %s", o.table)
	}
	if o.own != "" && !ovsdb.IsValidUUID(o.own) {
		return w, fmt.Errorf("insert in table %s: %q is not a UUID", o.table, o.own)
	}
	if o.op != ovsdb.OperationInsert {
		where, err := o.encodeWhere(t, schema)
		if err != nil {
			return w, fmt.Errorf("%s in table %s: %w", o.op, o.table, err)
		}
		w.Where = &where
	}
	return w, o.encodeBody(&w, t, schema)
}

// encodeWhere is the <condition>s of the rows that the operation is about.
func (o Operation) encodeWhere(t *table, schema *serverSchema) ([]Clause, error) {
	if o.where == nil {
		if !ovsdb.IsValidUUID(o.uuid) {
			return nil, fmt.Errorf("%q is not a row's UUID", o.uuid)
		}
		return []Clause{Equal("_uuid", UUID(o.uuid))}, nil
	}
	if len(o.where) == 0 {
		return nil, errors.New("there is no clause")
	}
	where := []Clause{}
	for _, c := range o.where {
		if c == All() {
			continue
		}
		if err := t.checkClause(c); err != nil {
			return nil, fmt.Errorf("clause %s: %w", c, err)
		}
		if c.column != "_uuid" && !schema.has(t.name, c.column) {
			return nil, lacks(t.name, c.column)
		}
		where = append(where, c)
	}
	return where, nil
}

// lacks is the error of a column that a server does not have.
func lacks(table, column string) error {
	return fmt.Errorf("the server's table %s has no column %s", table, column)
}

func (o Operation) encodeBody(w *wireOperation, t *table, schema *serverSchema) error {
	switch o.op {
	case ovsdb.OperationSelect:
		return t.encodeSelect(o, w, schema)
	case ovsdb.OperationInsert, ovsdb.OperationUpdate:
		row, err := t.encodeRow(o, schema)
		w.Row = &row
		return err
	case ovsdb.OperationWait:
		return o.encodeWait(w, t, schema)
	case ovsdb.OperationMutate:
		if !schema.has(o.table, o.column) {
			return lacks(o.table, o.column)
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
		switch o.op {
		case ovsdb.OperationUpdate:
			return nil, fmt.Errorf("%s in table %s names no column", o.op, t.name)
		case ovsdb.OperationWait:
			return rawRow{}, nil
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
		if ok && !schema.has(t.name, name) && slices.Contains(o.optional, name) {
			continue
		}
		if !ok || !schema.has(t.name, name) {
			return nil, lacks(t.name, name)
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
		if list, is := field.Interface().([]string); is && c.uuidKey {
			return uuidSet(list), nil
		}
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

// uuidSet writes a set of references. Of those of a switch there are thousands.
func uuidSet(list []string) json.RawMessage {
	raw := append(make([]byte, 0, len(list)*len(`["uuid","01234567-89ab-cdef-0123-456789abcdef"],`)+len(`["set",[]]`)), `["set",[`...)
	for i, u := range list {
		if i > 0 {
			raw = append(raw, ',')
		}
		if UUID(u).Valid() {
			raw = append(append(append(raw, `["uuid","`...), u...), `"]`...)
		} else {
			raw = append(raw, tag("named-uuid", u)...)
		}
	}
	return append(raw, `]]`...)
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
