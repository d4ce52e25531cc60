//go:build !guest

package evpn_test

import (
	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/programs"
)

// The tests run on this machine, whose kernel may lack Open vSwitch and VRF.
var plainParams = lab.EVPNParams{}

// answerIn is how many seconds an answer may take: on a busy machine the userspace
// datapath stands still for seconds. Only a lost packet makes a test wait for it.
const answerIn = "10"

// makePrograms builds the programs under test.
func makePrograms(dir string) error { return programs.LinkInto(dir, "sluiced", "sluicectl") }
