package reconcile

import "testing"

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
