package programs_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/test/bench/programs"
)

// BenchmarkPrograms prints the table; its own ns/op means nothing.
func BenchmarkPrograms(b *testing.B) {
	dir := b.TempDir()
	if err := unix.Mount("bpf", dir, "bpf", 0, "mode=0700"); err != nil {
		b.Fatalf("mount a bpf file system (root is needed): %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	for b.Loop() {
		results, err := programs.Run(context.Background(), dir, 200)
		if err != nil {
			b.Fatal(err)
		}
		cold, err := programs.RunCold(context.Background(), dir, 200)
		if err != nil {
			b.Fatal(err)
		}
		underlay, err := programs.RunUnderlay(context.Background(), dir, 200)
		if err != nil {
			b.Fatal(err)
		}
		passing, err := programs.RunTaps(context.Background(), dir, 200)
		if err != nil {
			b.Fatal(err)
		}
		for _, p := range passing {
			fmt.Printf("tap_in      IPv%d not metadata: %d ns, an empty program %d ns\n", p.Family, p.Tap.Nanoseconds(), p.Empty.Nanoseconds())
		}
		for _, r := range slices.Concat(results, cold, underlay) {
			fmt.Printf("%-11s IPv%d host=%-5t miss=%-5t cold=%-5t routes=%-6d vrfs=%-4d wrapper %3d redirect %3d tunnel %3d live %3d ns floor %.2f ratio %.2f goal %.1f\n", r.Program, r.Family, r.Host, r.Miss,
				r.Cold, r.Routes, r.VRFs, r.Timing.Wrapper.Nanoseconds(), r.Timing.Redirect.Nanoseconds(), r.Timing.Tunnel.Nanoseconds(),
				r.Timing.Live.Nanoseconds(), r.Timing.Floor(), r.Timing.Ratio(), r.Goal())
		}
	}
}
