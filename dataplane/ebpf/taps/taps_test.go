package taps

import (
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// Each field of the map of counters is one outcome, named as C names it.
func TestOutcomesAreTheCounters(t *testing.T) {
	specs, err := mapSpecs()
	if err != nil {
		t.Fatal(err)
	}
	var row bpfSteered
	fields := specs[bpfMapSteeredV1].Value.(*btf.Struct).Members
	if len(fields) != len(outcomes) {
		t.Fatalf("%d fields, %d outcomes", len(fields), len(outcomes))
	}
	for i, o := range Outcomes() {
		reflect.ValueOf(&row).Elem().Field(i + 1).SetUint(uint64(i + 1)) // behind the marker of the layout
		if o.Name != fields[i].Name || o.of(&row) != uint64(i+1) || o.Help == "" {
			t.Errorf("outcome %+v reads %d of field %s", o, o.of(&row), fields[i].Name)
		}
		if dropped := strings.HasPrefix(o.Name, "dropped_"); dropped != (droppedBy[o.Name] != "") {
			t.Errorf("%s is dropped by %q", o.Name, droppedBy[o.Name])
		}
	}
}

// Verify, and with it the record of what the verifier does, leaves no program out.
func TestVerifyHasEveryProgram(t *testing.T) {
	specs, err := mapSpecs()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := programSpecs(specs, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	verified := map[string]bool{}
	for _, spec := range objects {
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
