package rowform

import (
	"slices"
	"testing"
)

// FuzzPairs compares what is read in the plain way with what a JSON decoder reads.
func FuzzPairs(f *testing.F) {
	for _, text := range []string{
		`{}`, `{ }`, `{"a": 1}`, `{"a": "1"}`, `{"a": 1, "b": 2}`, `{"a": "x", "b": "y"}`, `{"a":"x","a":"y"}`, ` {"a": 1}`, `{"a": 1} `, `{"a": 1,}`, `{,}`,
		`{"a": 01}`, `{"a": -1}`, `{"a": 1.5}`, `{"a": 1e3}`, `{"a": 12345678901}`, `{"a": 0}`, `{"a" : 1 , "b" : 2 }`, `{"a": "\u00e9"}`, `{"a": "é"}`, "{\"a\":\t1}",
		`{"a": {}}`, `{"a": null}`, `{"a"}`, `{"a":}`, `{"a": "x`, `{"a": "x"`, `{"a": "x"}}`, `{"a": "x"} {"b": "y"}`, `null`, `[]`, ``, `{`, `}`, `{"": ""}`, `{"a": "x" "b": "y"}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		compare[int](t, text)
		compare[string](t, text)
	})
}

func compare[V comparable](t *testing.T, text string) {
	t.Helper()
	var plain, decoded pairs[V]
	if !plain.readPlain(text) {
		return
	}
	if err := decoded.readAny([]byte(text)); err != nil || !slices.Equal(plain, decoded) {
		t.Errorf("%q is read as %v, and by a decoder as %v %v", text, plain, decoded, err)
	}
}

// What the rows have is read in the plain way, and what is not JSON is an error.
func TestPlain(t *testing.T) {
	var c pairs[int]
	var s pairs[string]
	if !c.readPlain(`{"neutron-1": 2, "neutron-2": 10}`) || !s.readPlain(`{"m1": "ONLINE", "m2": "NO_MONITOR"}`) || !s.readPlain("{}") {
		t.Error("not read in the plain way")
	}
	for _, text := range []string{`{"a": "x"`, `{"a": "x"} x`, `{"a": "x",}`, `{"a": 1}`, "null", ""} {
		var s States
		if err := s.UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("%q is read as %v", text, s)
		}
	}
}
