package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// givers are the packages that the page is made of, as main.go names them.
func givers(t *testing.T) []string {
	t.Helper()
	code, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, line, found := strings.Cut(string(code), "//go:generate go run . reasons ")
	line, _, ended := strings.Cut(line, "\n")
	if !found || !ended {
		t.Fatal("main.go does not say how the page of reasons is made")
	}
	return strings.Fields(line)[1:]
}

// A reason that the code gives as a word of its own is an error that names it; so
// is one of the list that nothing gives.
func TestReasonsOfThePageAreThoseOfTheCode(t *testing.T) {
	givers := givers(t)
	if err := reasonsPage(&bytes.Buffer{}, givers); err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{
		`func f(r R) { r.SetCondition("bgp", false, "a-new-word", "") }`,
		`func f(t T) { t.fail(kindHost, "vm", "a-new-word", nil) }`,
		`func f(t T) { t.note(kindHost, "vm", "a-new-word", "detail") }`,
		`func f() { refuse("a-new-word", nil) }`,
		`func f() O { return O{Reason: "a-new-word"} }`,
		`func f() O { return O{reason: "a-new-word"} }`,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte("package p\n"+code+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		err := reasonsPage(&bytes.Buffer{}, append(givers, dir))
		if err == nil || !strings.Contains(err.Error(), "a-new-word") {
			t.Errorf("%s: %v", code, err)
		}
	}
	if err := reasonsPage(&bytes.Buffer{}, givers[:len(givers)-1]); err == nil || !strings.Contains(err.Error(), "given by none") {
		t.Errorf("without one that gives some: %v", err)
	}
}

func TestMapsOfThePageAreThoseOfTheCode(t *testing.T) {
	page := &bytes.Buffer{}
	if err := mapsPage(page); err != nil {
		t.Fatal(err)
	}
	if row := "| `hosts_v1` | hash | `struct host_key`, 20 | `struct route`, 8 | 1000000 | `hosts` |"; !strings.Contains(page.String(), row) {
		t.Errorf("the page has no row %s", row)
	}
	row := mapRows["hosts_v1"]
	delete(mapRows, "hosts_v1")
	if err := mapsPage(page); err == nil || !strings.Contains(err.Error(), "hosts_v1") {
		t.Errorf("a map that is not explained: %v", err)
	}
	mapRows["hosts_v1"], mapRows["none_v1"] = row, row
	defer delete(mapRows, "none_v1")
	if err := mapsPage(page); err == nil || !strings.Contains(err.Error(), "none_v1") {
		t.Errorf("a row that is no map: %v", err)
	}
}
