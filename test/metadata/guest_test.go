//go:build guest

package metadata_test

import (
	"testing"

	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

// The tests run in a virtual machine of test/vm: Open vSwitch has the kernel's datapath,
// and taps are its ports, as Nova plugs them without the hybrid driver.
var plainParams = lab.MetadataParams{KernelDatapath: true, DirectPlug: true}

// makePrograms takes the programs under test that the guest was given.
func makePrograms(dir string) error { return labtest.LinkPrograms(dir, "sluiced", "sluicectl") }

// A program on a tap comes before Open vSwitch, whose port the tap is.
func TestTapsInOpenVSwitch(t *testing.T) {
	w := shared(t)
	w.ownData(vms...)
	w.pairs("m-red1", "m-blue1", 50)
	for _, vm := range steered {
		w.answersItself(vm)
	}
	w.forgedSources("m-red1")
}

// They go through restarts of sluiced, its proxy and Open vSwitch.
func TestTapsInOpenVSwitchRestart(t *testing.T) {
	w := shared(t)
	for _, f := range faults {
		w.through(f, steered...)
	}
}

// And hand over to a namespace of the operator's when the proxy is gone.
func TestTapsInOpenVSwitchStale(t *testing.T) {
	w := shared(t)
	w.operatorTakesOver("m-red1", "red")
}
