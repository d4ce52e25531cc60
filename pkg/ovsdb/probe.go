package ovsdb

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/ovn-org/libovsdb/ovsdb"
)

// serverSchema is what a session knows of the server's schema.
type serverSchema struct {
	version string
	// columns that both sides know, with one shape, by table.
	columns map[string]map[string]bool
}

func (s *serverSchema) has(table, column string) bool {
	if s == nil {
		return false
	}
	columns, ok := s.columns[table]
	return ok && (column == "" || column == "_uuid" || columns[column])
}

// parseServerSchema reads a <database-schema> and keeps what fits the database's
// Go types. A column whose type has changed its shape counts as missing: reading
// it would be guessing.
func parseServerSchema(db *Database, raw json.RawMessage) (*serverSchema, error) {
	var schema struct {
		Version string `json:"version"`
		Tables  map[string]struct {
			Columns map[string]struct {
				Type json.RawMessage `json:"type"`
			} `json:"columns"`
		} `json:"tables"`
	}
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, fmt.Errorf("schema of %s: %w", db.name, err)
	}
	out := &serverSchema{version: schema.Version, columns: make(map[string]map[string]bool)}
	for name, t := range db.tables {
		served, ok := schema.Tables[name]
		if !ok {
			continue
		}
		out.columns[name] = make(map[string]bool)
		for _, c := range t.columns {
			if sc, ok := served.Columns[c.name]; ok && c.fits(sc.Type) {
				out.columns[name][c.name] = true
			}
		}
	}
	return out, nil
}

// wireType is a <type> of RFC 7047 section 3.2.
type wireType struct {
	Key   wireBase        `json:"key"`
	Value *wireBase       `json:"value"`
	Min   *int            `json:"min"`
	Max   json.RawMessage `json:"max"` // a number, or "unlimited"
}

// wireBase is a <base-type>: an atomic type, or an object that names one.
type wireBase struct {
	Type string `json:"type"`
}

func (b *wireBase) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &b.Type) == nil {
		return nil
	}
	type plain wireBase
	return json.Unmarshal(raw, (*plain)(b))
}

// fits tells whether values of the server's type decode into the column's field.
func (c column) fits(raw json.RawMessage) bool {
	var t wireType
	if json.Unmarshal(raw, &t.Key.Type) != nil && json.Unmarshal(raw, &t) != nil {
		return false
	}
	single := len(t.Max) == 0 || string(t.Max) == "1"
	switch c.typ.Kind() {
	case reflect.Map:
		return t.Value != nil && fitsAtom(t.Key.Type, c.typ.Key(), c.uuidKey) &&
			fitsAtom(t.Value.Type, c.typ.Elem(), c.uuidValue)
	case reflect.Slice:
		// One value at most would be sent whole in a modification, not as a
		// difference.
		return t.Value == nil && !single && fitsAtom(t.Key.Type, c.typ.Elem(), c.uuidKey)
	case reflect.Pointer:
		return t.Value == nil && single && fitsAtom(t.Key.Type, c.typ.Elem(), c.uuidKey)
	default:
		return t.Value == nil && single && (t.Min == nil || *t.Min == 1) &&
			fitsAtom(t.Key.Type, c.typ, c.uuidKey)
	}
}

func fitsAtom(wire string, typ reflect.Type, uuid bool) bool {
	switch wire {
	case ovsdb.TypeUUID:
		return uuid
	case ovsdb.TypeString:
		return !uuid && typ.Kind() == reflect.String
	case ovsdb.TypeInteger:
		return typ.Kind() == reflect.Int
	case ovsdb.TypeReal:
		return typ.Kind() == reflect.Float64
	case ovsdb.TypeBoolean:
		return typ.Kind() == reflect.Bool
	}
	return false
}

// request is what a monitor asks for: it decides whether a kept transaction id
// still describes the content.
func (s *serverSchema) request(tables Tables) map[string][]string {
	out := make(map[string][]string, len(tables))
	for name, columns := range tables {
		served, ok := s.columns[name]
		if !ok {
			continue
		}
		if columns == nil {
			columns = slices.Collect(maps.Keys(served))
		}
		known := []string{}
		for _, column := range columns {
			if served[column] {
				known = append(known, column)
			}
		}
		slices.Sort(known)
		out[name] = slices.Compact(known)
	}
	return out
}

// where is a table's conditions as the server is asked for them: without clauses
// on columns that it lacks, and false when nothing is left. An empty list would
// mean all rows.
func (s *serverSchema) where(table string, clauses []Clause) []any {
	var out []any
	for _, clause := range clauses {
		if s.has(table, clause.column) {
			out = append(out, clause)
		}
	}
	if len(out) == 0 {
		return []any{false}
	}
	return out
}

func equalColumns(a, b map[string][]string) bool {
	return maps.EqualFunc(a, b, slices.Equal[[]string])
}
