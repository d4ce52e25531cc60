package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestModelsAreCurrent generates all models anew and compares them with what is
// committed, stale files included.
func TestModelsAreCurrent(t *testing.T) {
	tree := filepath.Join("..", "..", "pkg", "ovsdb")
	for pkg, schema := range map[string]string{"sb": "ovn-sb", "nb": "ovn-nb", "vswitch": "vswitch"} {
		dir := t.TempDir()
		stale := filepath.Join(dir, "left.go")
		if err := os.WriteFile(stale, []byte(mark+"\n\npackage "+pkg+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := generate(pkg, namedTables(t, filepath.Join(tree, pkg)), filepath.Join(tree, "schema", schema+".ovsschema"), dir); err != nil {
			t.Fatalf("%s: %v", pkg, err)
		}
		if _, err := os.Stat(stale); err == nil {
			t.Errorf("%s: a stale file is left", pkg)
		}
		got, want := generated(t, dir), generated(t, filepath.Join(tree, pkg))
		if len(got) != len(want) {
			t.Errorf("%s: %d files generated, %d committed", pkg, len(got), len(want))
		}
		for name, content := range got {
			if !bytes.Equal(content, want[name]) {
				t.Errorf("%s/%s is not current: run go generate ./pkg/ovsdb/...", pkg, name)
			}
		}
	}
}

// namedTables are those of a package's go:generate line.
func namedTables(t *testing.T, dir string) []string {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join(dir, "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^//go:generate .* -tables (\S+) `).FindSubmatch(doc)
	if found == nil {
		t.Fatalf("%s: no go:generate line with -tables", dir)
	}
	return strings.Split(string(found[1]), ",")
}

// A name that the schema does not have is an error, before a file is removed.
func TestUnknownTable(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, "left.go")
	if err := os.WriteFile(left, []byte(mark+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := generate("sb", []string{"Chassis", "Chasis"}, filepath.Join("..", "..", "pkg", "ovsdb", "schema", "ovn-sb.ovsschema"), dir)
	if err == nil || !strings.Contains(err.Error(), `"Chasis"`) {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Stat(left); err != nil {
		t.Error(err)
	}
}

// generated reads the generated files of a directory.
func generated(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string][]byte)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.HasPrefix(bytes.TrimSpace(raw), []byte(mark)) {
			out[filepath.Base(file)] = raw
		}
	}
	return out
}
