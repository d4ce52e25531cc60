package ovsdb

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/ovn-org/libovsdb/ovsdb"
)

// tableOf is a row's table; it panics on a row of another database, which is a mistake of the caller.
func (d *Database) tableOf(row Row) (*table, reflect.Value) {
	v := reflect.ValueOf(row).Elem()
	t, ok := d.tables[row.OVSDBTable()]
	if !ok || t.typ != v.Type() {
		panic(fmt.Sprintf("ovsdb: a row of type %s in database %s", v.Type(), d.name))
	}
	return t, v
}

// column is one of a row's table; it panics on one that is not there.
func (t *table) column(name string) column {
	c, ok := t.columns[name]
	if !ok {
		panic(fmt.Sprintf("ovsdb: table %s has no column %s", t.name, name))
	}
	return c
}

// Project is a copy of the row that has only the named columns, and shares nothing with it.
func (d *Database) Project(row Row, columns ...string) Row {
	t, v := d.tableOf(row)
	out, to := t.newRow(row.GetUUID())
	for _, name := range columns {
		f := t.column(name).field
		to.Field(f).Set(cloned(v.Field(f)))
	}
	return out
}

// With is a copy of the row with the named columns of another one. It shares nothing with either.
func (d *Database) With(row, other Row, columns ...string) Row {
	out := row.CloneModel().(Row)
	t, to := d.tableOf(out)
	_, from := d.tableOf(other)
	for _, name := range columns {
		f := t.column(name).field
		to.Field(f).Set(cloned(from.Field(f)))
	}
	return out
}

func cloned(v reflect.Value) reflect.Value {
	if v.IsZero() {
		return v
	}
	switch v.Kind() {
	case reflect.Slice:
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(out, v)
		return out
	case reflect.Map:
		out := reflect.MakeMapWithSize(v.Type(), v.Len())
		for iter := v.MapRange(); iter.Next(); {
			out.SetMapIndex(iter.Key(), iter.Value())
		}
		return out
	case reflect.Pointer:
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(v.Elem())
		return out
	default:
		return v
	}
}

// Difference are the operations that make a row another one with its UUID: sets and maps change
// by what is added and removed, so that what others add stays. Maps are of strings to strings;
// one of another kind is written as a whole.
func (d *Database) Difference(before, after Row) (ops []Operation) {
	t, old := d.tableOf(before)
	_, now := d.tableOf(after)
	var whole []string
	for _, name := range slices.Sorted(maps.Keys(t.columns)) {
		c := t.columns[name]
		was, is := old.Field(c.field), now.Field(c.field)
		if same(was, is) {
			continue
		}
		switch {
		case c.typ.Kind() == reflect.Slice && c.typ.Elem().Kind() == reflect.String:
			ops = append(ops, setChange(t.name, after.GetUUID(), c, was.Interface().([]string), is.Interface().([]string))...)
		case c.typ == reflect.TypeFor[map[string]string]() && !c.uuidKey && !c.uuidValue:
			ops = append(ops, mapChange(t.name, after.GetUUID(), name, was.Interface().(map[string]string), is.Interface().(map[string]string))...)
		default:
			whole = append(whole, name)
		}
	}
	if len(whole) > 0 {
		ops = append(ops, Update(after, whole...))
	}
	return ops
}

// same compares columns; the order of a set, and whether an empty one is nil, make no difference.
func same(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Slice:
		if x, ok := a.Interface().([]string); ok {
			return len(missing(x, b.Interface().([]string))) == 0 && len(missing(b.Interface().([]string), x)) == 0
		}
	case reflect.Map:
		if a.Len() == 0 && b.Len() == 0 {
			return true
		}
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// missing are the members of a that b has not.
func missing(a, b []string) []string {
	in := make(map[string]struct{}, len(b))
	for _, m := range b {
		in[m] = struct{}{}
	}
	var out []string
	for _, m := range a {
		if _, ok := in[m]; !ok {
			out = append(out, m)
		}
	}
	return out
}

// setChange inserts first: after each mutation a set has to have as many members as its schema asks for.
func setChange(table, uuid string, c column, was, is []string) (ops []Operation) {
	for _, change := range []struct {
		mutator ovsdb.Mutator
		members []string
	}{{ovsdb.MutateOperationInsert, missing(is, was)}, {ovsdb.MutateOperationDelete, missing(was, is)}} {
		if len(change.members) == 0 {
			continue
		}
		set := atomSet(change.members)
		if c.uuidKey {
			set = atomSet(asUUIDs(change.members))
		}
		ops = append(ops, mutate(table, uuid, c.name, mutation{change.mutator, set, false}))
	}
	return ops
}

func asUUIDs(list []string) []UUID {
	out := make([]UUID, len(list))
	for i, u := range list {
		out[i] = UUID(u)
	}
	return out
}

func mapChange(table, uuid, column string, was, is map[string]string) (ops []Operation) {
	var gone []string
	set := map[string]string{}
	for k := range was {
		if _, ok := is[k]; !ok {
			gone = append(gone, k)
		}
	}
	for k, v := range is {
		if old, ok := was[k]; !ok || old != v {
			set[k] = v
		}
	}
	if len(gone) > 0 {
		slices.Sort(gone)
		ops = append(ops, DeleteKeys(table, uuid, column, gone...))
	}
	if len(set) > 0 {
		ops = append(ops, SetKeys(table, uuid, column, set))
	}
	return ops
}
