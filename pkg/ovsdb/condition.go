package ovsdb

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// Function compares a column with a clause's value, RFC 7047 section 5.1.
type Function string

// The functions that Sluice asks with.
const (
	FunctionEqual    Function = "=="
	FunctionIncludes Function = "includes"
)

// UUID is a row's UUID as an atom of its own type.
type UUID string

// Valid tells whether it has the form of a UUID, as OVSDB writes them: in lower case.
func (u UUID) Valid() bool {
	if len(u) != len("01234567-89ab-cdef-0123-456789abcdef") {
		return false
	}
	for i := range len(u) {
		switch c := u[i]; {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case (c < '0' || c > '9') && (c < 'a' || c > 'f'):
			return false
		}
	}
	return true
}

// Atom is a scalar that a clause or an operation compares with.
type Atom interface {
	string | int | bool | float64 | UUID
}

// Clause is one test of a row. Clauses are comparable values; make them with
// All, Equal and Includes.
type Clause struct {
	column   string
	function Function
	value    string // JSON, RFC 7047 section 5.1 <value>
}

// Conditions says which rows of each table are wanted: those that match at least
// one of its clauses. A table without a clause, or not named at all, has no rows.
type Conditions map[string][]Clause

// All matches every row.
func All() Clause { return Clause{} }

// Equal matches rows whose column holds exactly the atom: the scalar, or a set
// of just this one.
func Equal[A Atom](column string, atom A) Clause {
	return Clause{column, FunctionEqual, encodeAtom(atom)}
}

// Includes matches rows whose set column has the atom among its members.
func Includes[A Atom](column string, atom A) Clause {
	return Clause{column, FunctionIncludes, encodeAtom(atom)}
}

// IncludesPair matches rows whose map column (of strings to strings) has the key
// with the value.
func IncludesPair(column, key, value string) Clause {
	return Clause{column, FunctionIncludes, string(tag("map", [][2]string{{key, value}}))}
}

// String is the clause as a person reads it.
func (c Clause) String() string {
	if c.column == "" {
		return "all rows"
	}
	return fmt.Sprintf("%s %s %s", c.column, c.function, c.value)
}

// MarshalJSON writes the clause as RFC 7047 section 5.1 <condition>, or true.
func (c Clause) MarshalJSON() ([]byte, error) {
	if c.column == "" {
		return []byte("true"), nil
	}
	return json.Marshal([]any{c.column, c.function, json.RawMessage(c.value)})
}

// encodeAtom writes RFC 7047 section 5.1 <atom>. Marshalling one of Atom's types
// fails only for a float that is not a number, which becomes null and is refused
// by checkClause.
func encodeAtom[A Atom](atom A) string {
	var raw []byte
	var err error
	if u, ok := any(atom).(UUID); ok {
		raw, err = json.Marshal([2]string{"uuid", string(u)})
	} else {
		raw, err = json.Marshal(atom)
	}
	if err != nil {
		return "null"
	}
	return string(raw)
}

// normal returns a copy in which each table has its clauses once, in one order,
// and All alone if it is among them.
func (c Conditions) normal() Conditions {
	out := make(Conditions, len(c))
	for table, clauses := range c {
		if len(clauses) == 0 {
			continue
		}
		if slices.Contains(clauses, All()) {
			out[table] = []Clause{All()}
			continue
		}
		sorted := slices.Clone(clauses)
		slices.SortFunc(sorted, compareClauses)
		out[table] = slices.Compact(sorted)
	}
	return out
}

func compareClauses(a, b Clause) int {
	return cmp.Or(cmp.Compare(a.column, b.column), cmp.Compare(a.function, b.function),
		cmp.Compare(a.value, b.value))
}

// equal compares two normal forms.
func (c Conditions) equal(d Conditions) bool {
	if len(c) != len(d) {
		return false
	}
	for table, clauses := range c {
		if other, ok := d[table]; !ok || !slices.Equal(clauses, other) {
			return false
		}
	}
	return true
}
