//go:build bench

package vm_test

import (
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/test/vm"
)

// TestBench runs the parts of test/bench that are about Open vSwitch's kernel datapath,
// one machine after the other: each has the host's processors for itself. Times are those
// of an emulated processor; what is compared ran on the same one, side by side.
func TestBench(t *testing.T) {
	for _, r := range matrix {
		t.Run(r.kernel, func(t *testing.T) {
			k := r.cloudKernel(t)
			image, err := vm.DebianImage(t.Context(), "../../tools/image.sh", r.release)
			if err != nil {
				t.Fatal(err)
			}
			g := vm.Guest{Kernel: k, Image: image, MemoryMiB: 2048, Files: map[string]string{
				"bench": static(t, "bench", "build", "-buildvcs=false", "../bench"),
			}}
			g.Modules = append(slices.Clip(modules), "nf_conntrack_netlink") // without it Open vSwitch shows no connections
			for _, name := range append(clouds, "sluice-lab") {
				g.Files["bin/"+name] = program(t, name)
			}
			g.Script = versions + "export SLUICE_LAB_PATIENCE=10\n" +
				"./bench -parts balancing -kernel-datapath -balancing-rounds 9 -connections 64\n"
			r.checkVersions(t, k, run(t, g))
		})
	}
}
