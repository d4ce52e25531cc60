//go:build guest

package loadbalancer_test

import (
	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

// The tests run in a virtual machine of test/vm: Open vSwitch has the kernel's datapath, and
// taps are its ports.
var plainParams = lab.EVPNParams{KernelDatapath: true, DirectPlug: true}

// How long an answer is waited for, in seconds, by HTTP and by UDP: where the machine is emulated
// a request takes two to four.
const (
	httpPatience = "30"
	udpPatience  = "1"
)

// requests are those to each VIP, of which at least three of five backends get some.
const requests = 12

// makePrograms takes the programs under test that the guest was given.
func makePrograms(dir string) error {
	return labtest.LinkPrograms(dir, "sluiced", "sluicectl", "sluice-lab")
}
