//go:build !guest

package loadbalancer_test

import (
	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

// The tests run on this machine, whose kernel may lack Open vSwitch.
var plainParams = lab.EVPNParams{}

// How long an answer is waited for, in seconds, by HTTP and by UDP.
const (
	httpPatience = "3"
	udpPatience  = "0.3"
)

// requests are those to each VIP, of which at least three of five backends get some.
const requests = 20

// makePrograms builds the programs under test.
func makePrograms(dir string) error {
	return labtest.BuildPrograms(dir, "sluiced", "sluicectl", "sluice-lab")
}
