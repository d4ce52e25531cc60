package bpf_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	kernel "github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
)

// older makes a directory one of the first layout: its fronts are of no use to
// this build, and those of this build are not there.
func older(t *testing.T, dir string) (fronts []string) {
	t.Helper()
	for _, name := range []string{"vrf_front_v2", "gate_front_v2", "route_front_v1"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, size := range map[string]uint32{"vrf_front_v1": 8, "gate_front_v1": 4, "host_front_v1": 32} {
		m, err := kernel.NewMap(&kernel.MapSpec{Type: kernel.Array, KeySize: 4, ValueSize: size, MaxEntries: 1024})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		path := filepath.Join(dir, name)
		if err := m.Pin(path); err != nil {
			t.Fatal(err)
		}
		fronts = append(fronts, path)
	}
	return fronts
}

// shared is the memory of the fronts that the daemon writes without a call.
func shared(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, name := range []string{"vrf_front_v2", "route_front_v1"} {
		m, err := kernel.LoadPinnedMap(filepath.Join(dir, name), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		memory, err := m.Memory()
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, memory.Size())
		if _, err := memory.ReadAt(b, 0); err != nil {
			t.Fatal(err)
		}
		out[name] = b
	}
	return out
}

// An upgrade fills the fronts from the maps behind them and takes those of the
// older layout away.
func TestUpgradeFromOlderFronts(t *testing.T) {
	dir := bpffs(t)
	world(t, dir, node()).Close()
	fresh := shared(t, dir)
	fronts := older(t, dir)
	d := load(t, ebpf.Config{Dir: dir, Node: node()})
	wantWorld(t, d)
	for name, now := range shared(t, dir) {
		if !bytes.Equal(now, fresh[name]) {
			t.Errorf("after an upgrade %s is another", name)
		}
	}
	runRows(t, dir, d, []row{
		{name: "from the fabric", in: fromFabric(in4("10.20.0.9", "10.10.0.5")), out: lo},
		{name: "to the fabric", in: fromOVN(out6("fd00:10::5", "fd00:20::9")), out: vxlan},
	})
	for _, path := range fronts {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// What an older build left is removed as well.
func TestRemoveOlderFronts(t *testing.T) {
	dir := bpffs(t)
	world(t, dir, node()).Close()
	older(t, dir)
	if err := ebpf.Remove(dir, ebpf.Fabric); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", dir, err)
	}
}

// mapID tells whether two pins are one map.
func mapID(t *testing.T, path string) kernel.MapID {
	t.Helper()
	m, err := kernel.LoadPinnedMap(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	info, err := m.Info()
	if err != nil {
		t.Fatal(err)
	}
	id, _ := info.ID()
	return id
}

// The VRFs of the version before go on, under a name that its build refuses: nothing
// is filled again, and the programs go on with the map that they have.
func TestUpgradeContinuesVRFs(t *testing.T) {
	for _, c := range []struct {
		name string
		// left makes what the start finds; vrfs is the map of this version.
		left func(vrfs, before string) error
		vrfs uint32
		same bool
	}{
		{"the version before", os.Rename, 0, true},
		{"and another size", os.Rename, 128, false},
		{"what a crash left behind", func(vrfs, before string) error {
			m, err := kernel.LoadPinnedMap(vrfs, nil)
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
		}, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := bpffs(t)
			d := world(t, dir, node())
			list, err := d.VRFs().List(t.Context())
			d.Close()
			vrfs, before := filepath.Join(dir, "vrfs_v2"), filepath.Join(dir, "vrfs_v1")
			id, program := mapID(t, vrfs), programOf(t, dir)
			if err := errors.Join(err, c.left(vrfs, before)); err != nil {
				t.Fatal(err)
			}
			// Before a start, as the daemon and sluicectl read it.
			pinned, err := ebpf.PinnedVRFs(dir)
			if err != nil || len(pinned) != len(list) {
				t.Errorf("%d of %d VRFs are read from what is pinned: %v", len(pinned), len(list), err)
			}
			r, err := ebpf.OpenReader(dir, ebpf.Fabric)
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
			cfg := ebpf.Config{Dir: dir, Node: node(), Limits: ebpf.Limits{VRFs: c.vrfs}}
			if changes, err := inspect(t, cfg).Changes(); err != nil || c.same && len(changes) > 0 {
				t.Errorf("a start would change %+v, %v", changes, err)
			}
			d = load(t, cfg)
			if d.Staged() {
				t.Error("the start is staged")
			}
			wantWorld(t, d)
			if _, err := os.Stat(before); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v", before, err)
			}
			if now := mapID(t, vrfs); (now == id) != c.same {
				t.Errorf("the map is %d, and was %d", now, id)
			}
			if now := programOf(t, dir); (now == program) != c.same {
				t.Errorf("the program is %d, and was %d", now, program)
			}
			runRows(t, dir, d, []row{
				{name: "from the fabric", in: fromFabric(in4("10.20.0.9", "10.10.0.5")), out: lo},
				{name: "to the fabric", in: fromOVN(out6("fd00:10::5", "fd00:20::9")), out: vxlan},
			})
		})
	}
}
