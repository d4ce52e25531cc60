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

func TestParseVerified(t *testing.T) {
	const log = "processed 187124 insns (limit 1000000) max_states_per_insn 24 total_states 8582 peak_states 2344 mark_read 87\n"
	v, err := parseVerified(log)
	if err != nil || v.Instructions != 187124 || v.TotalStates != 8582 || v.PeakStates != 2344 {
		t.Errorf("%+v, %v", v, err)
	}
	if v, err := parseVerified("func#0 @0\n"); err == nil {
		t.Errorf("no statistics: %+v", v)
	}
}
