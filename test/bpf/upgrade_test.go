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

// older makes a directory one of an older layout: two fronts of the version before, which are
// of no use to this build, and none of this build's.
func older(t *testing.T, dir string) (fronts []string) {
	t.Helper()
	for _, name := range []string{"vrf_front_v2", "gate_front_v2", "route_front_v1"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, size := range map[string]uint32{"vrf_front_v1": 8, "gate_front_v1": 4} {
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
