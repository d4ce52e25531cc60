package statefile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWriteAndRemove(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	// What one that was killed has left: more than is to be written, and for all to read.
	if err := os.WriteFile(filepath.Join(dir, ".state.json.new"), []byte("longer than what follows"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, write := range []func(string, []byte) error{Write, WriteRuntime} {
		for _, content := range []string{"one", "two"} {
			if err := write(path, []byte(content)); err != nil {
				t.Fatal(err)
			}
			if b, err := os.ReadFile(path); err != nil || string(b) != content {
				t.Fatalf("%q, %v; want %q", b, err, content)
			}
		}
		if err := write(filepath.Join(dir, "none", "state.json"), nil); err == nil {
			t.Error("no error without a directory")
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	for range 2 {
		if err := Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
