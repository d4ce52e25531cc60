package bpf_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	kernel "github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
)

// The maps in arrays of maps are pinned, so that a start opens them by their paths: those that an
// earlier build left without a pin are pinned by the next start, and those of an array that is gone
// are removed.
func TestPagesArePinned(t *testing.T) {
	dir := bpffs(t)
	start := func() *ebpf.Dataplane { return load(t, ebpf.Config{Dir: dir, Node: node(), Limits: fewRows}) }
	pages := func() (names []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), "page_") && !strings.HasPrefix(e.Name(), "page_overlay_in_") { // that is no map's: TestCalledProgramOutlivesTheProcess
				names = append(names, e.Name())
			}
		}
		return names
	}
	d := start()
	fillWithVIPs(t, d)
	made := pages()
	if len(made) < 3 {
		t.Fatalf("pages that are pinned: %v", made)
	}
	d.Close()
	for _, name := range made {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	stale, err := kernel.NewMap(&kernel.MapSpec{Type: kernel.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer stale.Close()
	for _, name := range []string{"page_maglev_v2_1_0", "page_nothing_v1_1_0_new"} {
		if err := stale.Pin(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		stale, err = stale.Clone()
		if err != nil {
			t.Fatal(err)
		}
	}
	// One that is not the page of its number.
	if err := stale.Pin(filepath.Join(dir, made[0])); err != nil {
		t.Fatal(err)
	}
	d = start()
	if now := pages(); strings.Join(now, " ") != strings.Join(made, " ") {
		t.Errorf("pages that are pinned: %v, were %v", now, made)
	}
	pagesArePinned(t, dir)
	if kept, err := d.VIPs().List(t.Context()); err != nil || len(kept) != len(worldVIPs()) {
		t.Errorf("%d VIPs, %v", len(kept), err)
	}
}

// pagesArePinned wants each map of the arrays of maps under the name of its number.
func pagesArePinned(t *testing.T, dir string) {
	t.Helper()
	count := 0
	for _, name := range []string{"maglev_v2", "vip_stats_v1", "backend_stats_v1"} {
		outer, err := kernel.LoadPinnedMap(filepath.Join(dir, name), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer outer.Close()
		for number := uint32(0); number < outer.MaxEntries(); number++ {
			var want uint32
			if err := outer.Lookup(number, &want); errors.Is(err, kernel.ErrKeyNotExist) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			page, err := kernel.LoadPinnedMap(pinned.PagePin(dir, name, mapNumber(t, outer), number), nil)
			if err != nil {
				t.Errorf("%s: page %d: %v", name, number, err)
				continue
			}
			if is := mapNumber(t, page); is != kernel.MapID(want) {
				t.Errorf("%s: map %d is pinned as page %d, which is %d", name, is, number, want)
			}
			page.Close()
			count++
		}
	}
	if count < 3 {
		t.Errorf("%d pages", count)
	}
}

func mapNumber(t *testing.T, m *kernel.Map) kernel.MapID {
	t.Helper()
	info, err := m.Info()
	if err != nil {
		t.Fatal(err)
	}
	id, _ := info.ID()
	return id
}
