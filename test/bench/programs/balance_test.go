package programs_test

import (
	"context"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/test/bench/programs"
)

// BenchmarkBalance prints the table; its own ns/op means nothing.
func BenchmarkBalance(b *testing.B) {
	dir := b.TempDir()
	if err := unix.Mount("bpf", dir, "bpf", 0, "mode=0700"); err != nil {
		b.Fatalf("mount a bpf file system (root is needed): %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	for b.Loop() {
		rows, err := programs.RunBalance(context.Background(), dir, 40)
		for _, r := range rows {
			fmt.Printf("%-18s IPv%d vips=%-6d backends=%-5d wrapper %3d redirect %3d reference %4d live %4d ns; %.1fx and %.1fx redirect, %.2fx the reference\n", r.Traffic.Name, r.Family,
				r.VIPs, r.Backends, r.Wrapper.Nanoseconds(), r.Redirect.Nanoseconds(), r.Reference.Nanoseconds(), r.Live.Nanoseconds(), r.ReferenceRatio(), r.LiveRatio(), r.Ratio())
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
