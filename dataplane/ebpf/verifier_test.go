package ebpf

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
)

// Verify leaves no program out that this package has.
func TestVerifyHasEveryProgram(t *testing.T) {
	verified := map[string]bool{}
	for _, load := range objects() {
		spec, err := load()
		if err != nil {
			t.Fatal(err)
		}
		for name := range spec.Programs {
			verified[name] = true
		}
	}
	files, err := filepath.Glob("*_bpfel.o")
	if err != nil || len(files) == 0 {
		t.Fatalf("objects %v: %v", files, err)
	}
	for _, f := range files {
		spec, err := ebpf.LoadCollectionSpec(f)
		if err != nil {
			t.Fatal(err)
		}
		for name := range spec.Programs {
			if !verified[name] {
				t.Errorf("%s: program %s is not among %v", f, name, slices.Sorted(maps.Keys(verified)))
			}
		}
	}
}
