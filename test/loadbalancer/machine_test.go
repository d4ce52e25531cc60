//go:build !guest

package loadbalancer_test

import (
	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/programs"
)

// The tests run on this machine, whose kernel may lack Open vSwitch.
var plainParams = lab.EVPNParams{}

// How long an answer is waited for: by HTTP, in seconds, and by UDP.
const (
	httpPatience = "3"
	udpPatience  = "1s"
)

// makePrograms builds the programs under test.
func makePrograms(dir string) error {
	return programs.LinkInto(dir, "sluiced", "sluicectl", "sluice-lab", "sluice-controller")
}
