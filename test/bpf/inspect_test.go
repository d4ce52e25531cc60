package bpf_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	kernel "github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/test/pins"
)

func content(t *testing.T, dir string) string {
	t.Helper()
	text, err := pins.Dump(dir)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func inspect(t *testing.T, cfg ebpf.Config) *ebpf.Inspection {
	t.Helper()
	cfg.Bridges = bridges{}
	i, err := ebpf.Inspect(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.Close() })
	return i
}

func summary(t *testing.T, i *ebpf.Inspection) string {
	t.Helper()
	changes, err := i.Changes()
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, c := range changes {
		words = append(words, c.Action+" "+c.Table+" "+c.Key)
	}
	return strings.Join(words, ", ")
}

// An inspection lists what is there beside a process that has it loaded, says
// what a start would change, and changes nothing itself.
func TestInspectChangesNothing(t *testing.T) {
	dir := bpffs(t)
	world(t, dir, node())
	before := content(t, dir)
	other := node()
	other.UnderlayMTU++
	for _, c := range []struct {
		name string
		cfg  ebpf.Config
		want string
	}{
		{"as it is", ebpf.Config{Node: node()}, ""},
		{"constants", ebpf.Config{Node: other}, "change program fabric_in, change program overlay_in, change program vrf_guard, change program underlay_in"},
		{"a size", ebpf.Config{Node: node(), Limits: ebpf.Limits{VTEPs: 500}},
			"change map path_mtus_v1, change map vteps_v1, change program fabric_in, change program overlay_in, change program vrf_guard, change program underlay_in"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.cfg.Dir = dir
			i := inspect(t, c.cfg)
			wantWorld(t, i)
			if got := summary(t, i); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if a, err := i.Attachment(ebpf.OverlayIn, "lo", lo); err != nil || a == nil || a.Action != "add" {
				t.Errorf("the device without a program: %+v, %v", a, err)
			}
		})
	}
	if after := content(t, dir); after != before {
		t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
}

// Rows that a start would remove, since nothing can be told of them, stay.
func TestInspectRepairsNothing(t *testing.T) {
	dir := bpffs(t)
	world(t, dir, node()).Close()
	names, err := kernel.LoadPinnedMap(filepath.Join(dir, "names_v1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer names.Close()
	var key, value []byte
	for it := names.Iterate(); it.Next(&key, &value); {
		if err := names.Delete(key); err != nil {
			t.Fatal(err)
		}
	}
	before := content(t, dir)
	i := inspect(t, ebpf.Config{Dir: dir, Node: node()})
	if got := list(t, i.Routes()); len(got) != len(worldRoutes()) {
		t.Errorf("%d routes", len(got))
	}
	if after := content(t, dir); after != before {
		t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
}

// Where nothing is pinned everything is to be made, and nothing is.
func TestInspectOfNothing(t *testing.T) {
	dir := bpffs(t)
	i := inspect(t, ebpf.Config{Dir: dir, Node: node()})
	for what, n := range map[string]int{
		"VRFs": len(list(t, i.VRFs())), "gateways": len(list(t, i.Gateways())), "served": len(list(t, i.Served())),
		"VTEPs": len(list(t, i.VTEPs())), "routes": len(list(t, i.Routes())),
	} {
		if n != 0 {
			t.Errorf("%d %s", n, what)
		}
	}
	got := summary(t, i)
	for _, want := range []string{"add map hosts_v1", "add map known_v1", "add program fabric_in", "add program overlay_in"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in %q", want, got)
		}
	}
	if strings.Contains(got, "change") {
		t.Errorf("changes of nothing: %q", got)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the directory was made")
	}
	if _, err := ebpf.Inspect(ebpf.Config{Dir: t.TempDir(), Node: node()}); !errors.Is(err, ebpf.ErrNotBPFFS) {
		t.Errorf("on another file system: %v", err)
	}
}
