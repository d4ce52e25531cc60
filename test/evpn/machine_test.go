//go:build !guest

package evpn_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/ovn-sluice/sluice/test/lab"
)

// The tests run on this machine, whose kernel may lack Open vSwitch and VRF.
var plainParams = lab.EVPNParams{}

// answerIn is how many seconds an answer may take: on a busy machine the userspace
// datapath stands still for seconds. Only a lost packet makes a test wait for it.
const answerIn = "10"

// makePrograms builds the programs under test.
func makePrograms(dir string) error {
	for _, program := range []string{"sluiced", "sluicectl"} {
		build := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(dir, program), "../../cmd/"+program)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w\n%s", program, err, out)
		}
	}
	return nil
}
