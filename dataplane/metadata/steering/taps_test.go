package steering

import (
	"log/slog"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

var _ Maps = (*taps.Taps)(nil)

// With the kernel's own maps and programs a port is listed as it was applied, by the next
// process too, and nothing is left of it.
func TestKernel(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	if err := unix.Mount("bpf", dir, "bpf", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	start := func() (*taps.Taps, *Driver) {
		var programs *taps.Taps
		err := netns.Named(w.ns).Do(func() (err error) {
			programs, err = taps.Load(taps.Config{Dir: filepath.Join(dir, "metadata"), StaleAfter: time.Second, Log: slog.New(slog.DiscardHandler)})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return programs, New(Config{Maps: programs, File: w.file, Node: netns.Named(w.ns)})
	}
	tap := w.tap("tapA", 101)
	trunk := tap
	trunk.VLAN = 7
	want := tableOf(port("a", tap, guestAt(5, "10.0.0.5", "10.0.0.6", "2001:db8::5")...), port("sub", trunk, guestAt(5, "10.0.0.5")...),
		port("b", w.tap("tapB", 102), guestAt(5, "10.0.0.5")...), port("none", intent.Tap{}, guestAt(9, "10.0.0.9")...))
	listed := func(what string, d *Driver, want table) {
		t.Helper()
		is, err := d.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, table(is)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	programs, d := start()
	listed("nothing", d, table{})
	var rows []reconcile.Row[string, intent.MetadataPort]
	for k, v := range want {
		rows = append(rows, reconcile.Row[string, intent.MetadataPort]{Key: k, Value: v})
	}
	if errs := d.Apply(t.Context(), rows); errs != nil {
		t.Fatal(errs)
	}
	listed("applied", d, want)
	if err := programs.Close(); err != nil {
		t.Fatal(err)
	}
	programs, d = start()
	defer func() { _ = programs.Close() }()
	listed("by the next process", d, want)
	w.untap("tapB")
	gone := maps.Clone(want)
	gone["b"] = intent.MetadataPort{}
	listed("a tap goes", d, gone)
	if errs := d.Delete(t.Context(), []string{"a", "b", "sub", "none"}); errs != nil {
		t.Fatal(errs)
	}
	listed("removed", d, table{})
	if sources, err := programs.Sources(); len(sources) > 0 || err != nil {
		t.Errorf("sources left: %v, %v", sources, err)
	}
}
