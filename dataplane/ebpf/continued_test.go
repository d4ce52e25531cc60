package ebpf

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
)

// pinnedRows are two maps in a directory of pins, with a row each.
type pinnedRows struct {
	dir   string
	specs map[string]*ebpf.MapSpec
}

// The rows are read, and nothing is staged, before the name changes and after.
func (p pinnedRows) check(t *testing.T, when string) {
	t.Helper()
	if vrfs, err := PinnedVRFs(p.dir); err != nil || len(vrfs) != 1 || vrfs[7] != 3 {
		t.Errorf("%s: VRFs %v, %v", when, vrfs, err)
	}
	if older, err := checkLayout(p.dir, p.specs); err != nil || len(older) > 0 {
		t.Errorf("%s: %v are of an older layout, %v", when, older, err)
	}
}

func newPinnedRows(t *testing.T) pinnedRows {
	t.Helper()
	if err := pinned.LiftMemlock(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := unix.Mount("bpf", dir, "bpf", 0, "mode=0700"); err != nil {
		t.Fatalf("mount a bpf file system (root is needed): %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	all, err := mapSpecs(Limits{VRFs: 16, Flows: 256}.withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	p := pinnedRows{dir, map[string]*ebpf.MapSpec{bpfMapVrfsV2: all[bpfMapVrfsV2], bpfMapFlowsV4: all[bpfMapFlowsV4]}}
	o, err := openTables(dir, p.specs, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	if err := errors.Join(o.tables[bpfMapVrfsV2].Put(uint32(7), bpfVrf{Index: 3}), o.tables[bpfMapFlowsV4].Put(bpfFlowKey{Scope: 7}, bpfFlow{Seen: 1})); err != nil {
		t.Fatal(err)
	}
	return p
}

// Maps of the version before whose rows mean the same go on under the next version's name.
func TestContinued(t *testing.T) {
	before := map[string]string{bpfMapVrfsV2: "vrfs_v1", bpfMapFlowsV4: "flows_v3"}
	maps.Copy(continued, before)
	t.Cleanup(func() { clear(continued) })
	rename := func(from, to string) error { return os.Rename(from, to) }
	for _, c := range []struct {
		name string
		// left makes of a pin of this version what a start finds.
		left    func(pin, before string) error
		vrfs    uint32 // rows that the start wants
		goes    bool   // the map of before is the one of this version
		rebuilt []string
	}{
		{"the version before", rename, 16, true, nil},
		{"with another size", rename, 32, true, []string{bpfMapVrfsV2}},
		{"what a crash left behind", func(pin, before string) error {
			m, err := ebpf.LoadPinnedMap(pin, nil)
			if err != nil {
				return err
			}
			defer m.Close()
			again, err := m.Clone()
			if err != nil {
				return err
			}
			defer again.Close()
			return again.Pin(before)
		}, 16, false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPinnedRows(t)
			at := func(name string) string { return filepath.Join(p.dir, name) }
			for name, old := range before {
				if err := c.left(at(name), at(old)); err != nil {
					t.Fatal(err)
				}
			}
			p.specs[bpfMapVrfsV2].MaxEntries = c.vrfs
			p.specs[bpfMapFlowsV4].MaxEntries /= 2
			p.check(t, "before a start")
			if d := (&Dataplane{dir: p.dir, specs: p.specs}); d.continues() != c.goes {
				t.Errorf("maps of before are to go on: %t", !c.goes)
			}
			if kept, err := keepLarger(p.dir, p.specs); err != nil || len(kept) > 0 {
				t.Errorf("%v keep their sizes, since their rows do not fit: %v", kept, err)
			}
			o, err := openTables(p.dir, p.specs, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer o.close()
			want := c.rebuilt
			if !c.goes { // no programs of before run, which would use the map of flows beside those of this version
				want = []string{bpfMapFlowsV4}
			}
			if !slices.Equal(o.rebuilt, want) {
				t.Errorf("%v are rebuilt, not %v", o.rebuilt, want)
			}
			if err := errors.Join(o.tables.publish(p.dir, o.rebuilt), nameContinued(p.dir), removeOutdated(p.dir, p.specs)); err != nil {
				t.Fatal(err)
			}
			for _, old := range before {
				if _, err := os.Lstat(at(old)); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s: %v", old, err)
				}
			}
			p.check(t, "after a start")
			var f bpfFlow
			if err := o.tables[bpfMapFlowsV4].Lookup(bpfFlowKey{Scope: 7}, &f); err != nil || f.Seen != 1 {
				t.Errorf("the flow: %+v, %v", f, err)
			}
		})
	}
}
