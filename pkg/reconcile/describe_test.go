package reconcile

import (
	"errors"
	"testing"
)

func TestDescribe(t *testing.T) {
	type row struct {
		Key  string
		Kind int
		Port string
		Open bool
	}
	for _, tc := range []struct {
		key  string
		row  row
		want string
	}{
		{"a", row{}, "not as it was left"},
		{"a", row{Key: "a", Kind: 2}, "Kind:2 Open:false"},
		{"a", row{Key: "a", Port: "p"}, "Port:p Open:false"},
		{"a", row{Key: "b", Open: true}, "Key:b Open:true"},
	} {
		if got := describe(tc.key, tc.row); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.row, got, tc.want)
		}
	}
	if got := describe("a", 3); got != "3" {
		t.Errorf("a number: %q", got)
	}
	if got := describe("a", struct{ Name string }{"a"}); got != "there" {
		t.Errorf("the key alone: %q", got)
	}
}

func TestReadOnlyDriverRefusesWrites(t *testing.T) {
	m := newMemory("a", nil)
	m.rows["there"] = 1
	d := ReadOnly[string, int](m)
	rows, err := d.List(t.Context())
	if err != nil || rows["there"] != 1 {
		t.Errorf("listed %v, %v", rows, err)
	}
	for _, err := range append(d.Apply(t.Context(), []Row[string, int]{{"new", 1}}), d.Delete(t.Context(), []string{"there"})...) {
		if !errors.Is(err, ErrReadOnly) {
			t.Errorf("a write: %v", err)
		}
	}
	if len(m.rows) != 1 {
		t.Errorf("rows %v", m.rows)
	}
}
