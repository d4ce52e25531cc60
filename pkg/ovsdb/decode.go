package ovsdb

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"unique"
)

// rawRow is a <row> of RFC 7047 section 5.1, its values undecoded.
type rawRow map[string]json.RawMessage

// rowUpdate is a <row-update2> of ovsdb-server(7): exactly one member is there.
type rowUpdate struct {
	Initial *rawRow         `json:"initial"`
	Insert  *rawRow         `json:"insert"`
	Modify  *rawRow         `json:"modify"`
	Delete  json.RawMessage `json:"delete"` // null when present
	deleted bool
}

// UnmarshalJSON tells {"delete": null} from an object without the member.
func (u *rowUpdate) UnmarshalJSON(raw []byte) error {
	type plain rowUpdate
	if err := json.Unmarshal(raw, (*plain)(u)); err != nil {
		return err
	}
	u.deleted = u.Initial == nil && u.Insert == nil && u.Modify == nil
	if u.deleted && !bytes.Contains(raw, []byte(`"delete"`)) {
		return protocolError("a row update that is none of initial, insert, modify, delete")
	}
	return nil
}

// tableUpdates is a <table-updates2>: table → row UUID → update.
type tableUpdates map[string]map[string]*rowUpdate

// fresh makes a row from an initial or insert update. A column that is left out
// has its default, which is the zero value.
func (t *table) fresh(uuid string, raw rawRow) (Row, error) {
	row, v := t.newRow(uuid)
	for name, value := range raw {
		c, ok := t.columns[name]
		if !ok {
			continue
		}
		if err := c.decode(v.Field(c.field), value); err != nil {
			return nil, fmt.Errorf("table %s, row %s, column %s: %w", t.name, uuid, name, err)
		}
	}
	return row, nil
}

// modified applies a modify update to a copy of old. Unchanged sets and maps are
// shared with old.
func (t *table) modified(old Row, raw rawRow) (Row, error) {
	out := reflect.New(t.typ)
	v := out.Elem()
	v.Set(reflect.ValueOf(old).Elem())
	for name, value := range raw {
		c, ok := t.columns[name]
		if !ok {
			continue
		}
		if err := c.apply(v.Field(c.field), value); err != nil {
			return nil, fmt.Errorf("table %s, row %s, column %s: %w", t.name, old.GetUUID(), name, err)
		}
	}
	return out.Interface().(Row), nil
}

// decode sets the field to the value. Empty sets and maps become nil, sets are
// sorted.
func (c column) decode(field reflect.Value, raw json.RawMessage) error {
	switch c.typ.Kind() {
	case reflect.Map:
		return c.decodeMap(field, raw)
	case reflect.Slice:
		return c.decodeSet(field, raw)
	case reflect.Pointer:
		atoms, err := setAtoms(raw)
		if err != nil {
			return err
		}
		if len(atoms) > 1 {
			return protocolError("%d values where at most one belongs", len(atoms))
		}
		field.SetZero()
		if len(atoms) == 0 {
			return nil
		}
		p := reflect.New(c.typ.Elem())
		if err := decodeAtom(p, atoms[0], c.uuidKey); err != nil {
			return err
		}
		field.Set(p)
		return nil
	default:
		return decodeAtom(field.Addr(), raw, c.uuidKey)
	}
}

// apply changes the field by a value of a modify update: the new value for what
// holds at most one, else the difference (ovsdb-server(7), "<row-update2>").
func (c column) apply(field reflect.Value, raw json.RawMessage) error {
	kind := c.typ.Kind()
	if kind != reflect.Map && kind != reflect.Slice {
		return c.decode(field, raw)
	}
	diff := reflect.New(c.typ).Elem()
	if err := c.decode(diff, raw); err != nil {
		return err
	}
	var merged any
	switch d := diff.Interface().(type) {
	case []string:
		merged = toggle(field.Interface().([]string), d)
	case []int:
		merged = toggle(field.Interface().([]int), d)
	case []float64:
		merged = toggle(field.Interface().([]float64), d)
	case map[string]string:
		merged = patch(field.Interface().(map[string]string), d)
	case map[string]int:
		merged = patch(field.Interface().(map[string]int), d)
	case map[int]string:
		merged = patch(field.Interface().(map[int]string), d)
	case map[int]int:
		merged = patch(field.Interface().(map[int]int), d)
	default:
		return fmt.Errorf("no rule to change a %s", c.typ)
	}
	field.Set(reflect.ValueOf(merged))
	return nil
}

// toggle is the symmetric difference: what is in one of the two.
func toggle[T cmp.Ordered](old, diff []T) []T {
	var out []T
	for _, v := range old {
		if _, both := slices.BinarySearch(diff, v); !both {
			out = append(out, v)
		}
	}
	for _, v := range diff {
		if _, both := slices.BinarySearch(old, v); !both {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}

// patch applies a map's difference: a pair that the map has as it is goes, any
// other is added or replaces its key's value.
func patch[K, V comparable](old, diff map[K]V) map[K]V {
	out := maps.Clone(old)
	for k, v := range diff {
		if was, ok := out[k]; ok && was == v {
			delete(out, k)
			continue
		}
		if out == nil {
			out = make(map[K]V, len(diff))
		}
		out[k] = v
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func (c column) decodeSet(field reflect.Value, raw json.RawMessage) error {
	atoms, err := setAtoms(raw)
	if err != nil {
		return err
	}
	field.SetZero()
	if len(atoms) == 0 {
		return nil
	}
	set := reflect.MakeSlice(c.typ, len(atoms), len(atoms))
	for i, atom := range atoms {
		if err := decodeAtom(set.Index(i).Addr(), atom, c.uuidKey); err != nil {
			return err
		}
	}
	switch s := set.Interface().(type) {
	case []string:
		slices.Sort(s)
	case []int:
		slices.Sort(s)
	case []float64:
		slices.Sort(s)
	}
	field.Set(set)
	return nil
}

func (c column) decodeMap(field reflect.Value, raw json.RawMessage) error {
	tag, rest, err := tagged(raw)
	if err != nil {
		return err
	}
	var pairs [][]json.RawMessage
	if tag != "map" {
		return protocolError("%q where a map belongs", tag)
	}
	if err := json.Unmarshal(rest, &pairs); err != nil {
		return err
	}
	field.SetZero()
	if len(pairs) == 0 {
		return nil
	}
	m := reflect.Value{}
	for _, pair := range pairs {
		if len(pair) != 2 {
			return protocolError("a map's pair of %d values", len(pair))
		}
		k, v := reflect.New(c.typ.Key()), reflect.New(c.typ.Elem())
		if err := decodeAtom(k, pair[0], c.uuidKey); err != nil {
			return err
		}
		if err := decodeAtom(v, pair[1], c.uuidValue); err != nil {
			return err
		}
		if c.keep != nil && !c.keep(k.Elem().String()) {
			continue
		}
		if !m.IsValid() {
			m = reflect.MakeMap(c.typ)
		}
		share(k)
		m.SetMapIndex(k.Elem(), v.Elem())
	}
	if m.IsValid() {
		field.Set(m)
	}
	return nil
}

// setAtoms splits a <set>: one bare <atom>, or ["set", [<atom>*]].
func setAtoms(raw json.RawMessage) ([]json.RawMessage, error) {
	if len(raw) == 0 || raw[0] != '[' {
		return []json.RawMessage{raw}, nil
	}
	tag, rest, err := tagged(raw)
	switch {
	case err != nil:
		return nil, err
	case tag == "uuid":
		return []json.RawMessage{raw}, nil
	case tag != "set":
		return nil, protocolError("%q where a set belongs", tag)
	}
	var atoms []json.RawMessage
	err = json.Unmarshal(rest, &atoms)
	return atoms, err
}

// tagged splits ["tag", rest].
func tagged(raw json.RawMessage) (string, json.RawMessage, error) {
	var parts []json.RawMessage
	if err := json.Unmarshal(raw, &parts); err != nil {
		return "", nil, err
	}
	if len(parts) != 2 {
		return "", nil, protocolError("%d values where a tag and a value belong", len(parts))
	}
	var tag string
	err := json.Unmarshal(parts[0], &tag)
	return tag, parts[1], err
}

// decodeAtom sets what p points to.
func decodeAtom(p reflect.Value, raw json.RawMessage, uuid bool) error {
	if !uuid {
		if len(raw) == 0 || raw[0] == 'n' { // json.Unmarshal ignores null
			return protocolError("no value where one belongs")
		}
		return json.Unmarshal(raw, p.Interface())
	}
	tag, rest, err := tagged(raw)
	if err != nil {
		return err
	}
	if tag != "uuid" {
		return protocolError("%q where a UUID belongs", tag)
	}
	var s string
	if err := json.Unmarshal(rest, &s); err != nil {
		return err
	}
	p.Elem().SetString(s)
	share(p)
	return nil
}

// share lets equal strings take the room of one, where many rows have the same:
// references to a row that many refer to, and the keys of maps.
func share(p reflect.Value) {
	if v := p.Elem(); v.Kind() == reflect.String {
		v.SetString(unique.Make(v.String()).Value())
	}
}
