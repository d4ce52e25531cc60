package forwarding

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Few and short rounds: that everything arrives, on all ways.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("bpf", dir, "bpf", 0, "mode=0700"); err != nil {
		t.Fatalf("mount a bpf file system (root is needed): %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	results, err := Run(context.Background(), Options{BPFFS: dir, Rounds: 1, StreamRounds: 1, Packets: 2000, Span: 10 * time.Millisecond})
	for _, r := range results {
		if r.Sluice <= 0 || r.Kernel <= 0 {
			t.Errorf("%+v", r)
		}
	}
	if err != nil || len(results) != 4+4+2+4 {
		t.Fatalf("%d results, %v", len(results), err)
	}
}
