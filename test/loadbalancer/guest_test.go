//go:build guest

package loadbalancer_test

import (
	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

// The tests run in a virtual machine of test/vm: Open vSwitch has the kernel's datapath, and
// taps are its ports.
var plainParams = lab.EVPNParams{KernelDatapath: true, DirectPlug: true}

// How long an answer is waited for: by HTTP, in seconds, and by UDP. Where the VM is
// emulated a request takes two to four.
const (
	httpPatience = "30"
	udpPatience  = "10s"
)

// makePrograms takes the programs under test that the guest was given.
func makePrograms(dir string) error {
	return labtest.LinkPrograms(dir, "sluiced", "sluicectl", "sluice-lab")
}
