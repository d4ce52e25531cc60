package vm_test

import (
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/test/vm"
)

// What a lab with Open vSwitch's kernel datapath and VRF devices needs.
var cloudModules = append([]string{"openvswitch", "vport-geneve", "geneve"}, modules...)

// versions is a script that prints a line each.
const versions = `ovn-controller --version | head -n 1
ovs-vswitchd --version | head -n 1
/usr/lib/frr/bgpd --version | head -n 1
`

// TestClouds runs clouds and provider edges with FRR inside of a virtual machine,
// which has OVN, Open vSwitch with the kernel's datapath, and FRR of its release.
func TestClouds(t *testing.T) {
	every := []string{"TestKernelDatapath", "TestFRREdge"}
	more := []string{"TestFRREdgeECMP"}
	tests := every
	if nightly() {
		tests = append(every, more...)
	} else {
		report(t, "left to nightly: %s", strings.Join(more, ", "))
	}
	s := suite{pkg: "../evpn", tags: "guest", run: "^(" + strings.Join(tests, "|") + ")$"}
	each(t, func(t *testing.T, r row, k vm.Kernel) {
		image, err := vm.DebianImage(t.Context(), "../../tools/image.sh", r.release)
		if err != nil {
			t.Fatal(err)
		}
		out := s.under(t, vm.Guest{
			Kernel: k, Image: image, Modules: cloudModules, MemoryMiB: 2048,
			Files:  map[string]string{"bin/sluiced": program(t, "sluiced"), "bin/sluicectl": program(t, "sluicectl")},
			Script: versions + "export SLUICE_LAB_PATIENCE=10\n",
		}, "")
		said := strings.SplitN(out, "\n", 5)
		report(t, "kernel %s", strings.Join(said[:min(4, len(said))], ", "))
	})
}
