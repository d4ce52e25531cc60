package ovsdb

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/ovn-org/libovsdb/ovsdb"
)

// Database describes one kind of database: its schema and the Go type of each
// table's rows. The generated packages have one each.
type Database struct {
	name   string
	tables map[string]*table
}

// table is how rows of one table become Go structs.
type table struct {
	name    string
	typ     reflect.Type // the struct, not the pointer
	uuid    int          // index of the field that holds _uuid
	columns map[string]column
}

// column is one field of a table's struct. The field's Go type says whether it is
// a scalar, an optional value (pointer), a set (slice) or a map.
type column struct {
	name string
	// field is the index in the struct.
	field int
	typ   reflect.Type
	// uuidKey and uuidValue: atoms are UUIDs on the wire, strings in Go.
	uuidKey, uuidValue bool
	// keep, when set, says which keys of a map a session's rows have.
	keep func(key string) bool
}

// NewDatabase is called by the generated packages. It panics when the row types
// do not belong to the schema, which is a mistake of the generator.
func NewDatabase(schema ovsdb.DatabaseSchema, rows []Row) *Database {
	db := &Database{name: schema.Name, tables: make(map[string]*table, len(rows))}
	for _, row := range rows {
		name := row.OVSDBTable()
		t, err := newTable(name, reflect.TypeOf(row).Elem(), schema.Table(name))
		if err != nil {
			panic(fmt.Sprintf("ovsdb %s: %v", schema.Name, err))
		}
		db.tables[name] = t
	}
	return db
}

// keeping is the database with rows that have only some keys of their maps.
func (d *Database) keeping(keys Keys) (*Database, error) {
	if len(keys) == 0 {
		return d, nil
	}
	out := &Database{name: d.name, tables: maps.Clone(d.tables)}
	for name, columns := range keys {
		old, ok := d.tables[name]
		if !ok {
			return nil, fmt.Errorf("database %s has no table %s", d.name, name)
		}
		t := *old
		t.columns = maps.Clone(old.columns)
		for column, keep := range columns {
			c, ok := t.columns[column]
			if !ok || c.typ.Kind() != reflect.Map || c.typ.Key().Kind() != reflect.String {
				return nil, fmt.Errorf("table %s has no column %s that is a map of strings", name, column)
			}
			c.keep = keep
			t.columns[column] = c
		}
		out.tables[name] = &t
	}
	return out, nil
}

// Name is the database's name on the server, such as OVN_Southbound.
func (d *Database) Name() string { return d.name }

// Tables lists the tables, sorted.
func (d *Database) Tables() []string {
	names := make([]string, 0, len(d.tables))
	for name := range d.tables {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func newTable(name string, typ reflect.Type, schema *ovsdb.TableSchema) (*table, error) {
	if schema == nil {
		return nil, fmt.Errorf("table %s is not in the schema", name)
	}
	t := &table{name: name, typ: typ, uuid: -1, columns: make(map[string]column)}
	for i := range typ.NumField() {
		field := typ.Field(i)
		tag := field.Tag.Get("ovsdb")
		if tag == "_uuid" {
			t.uuid = i
			continue
		}
		s := schema.Column(tag)
		if s == nil {
			return nil, fmt.Errorf("table %s: column %q is not in the schema", name, tag)
		}
		c := column{name: tag, field: i, typ: field.Type, uuidKey: s.Type == ovsdb.TypeUUID}
		if s.TypeObj != nil {
			c.uuidKey = s.TypeObj.Key != nil && s.TypeObj.Key.Type == ovsdb.TypeUUID
			c.uuidValue = s.TypeObj.Value != nil && s.TypeObj.Value.Type == ovsdb.TypeUUID
		}
		t.columns[tag] = c
	}
	if t.uuid < 0 {
		return nil, fmt.Errorf("table %s: no field for _uuid", name)
	}
	return t, nil
}

// newRow makes an empty row.
func (t *table) newRow(uuid string) (Row, reflect.Value) {
	v := reflect.New(t.typ)
	v.Elem().Field(t.uuid).SetString(uuid)
	return v.Interface().(Row), v.Elem()
}
