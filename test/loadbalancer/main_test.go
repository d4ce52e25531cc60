package loadbalancer_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

// bin holds the programs under test.
var bin string

// plain is the lab of the tests that put back what they change.
var plain = labtest.NewShared(lab.LB(lab.EVPNParams{}))

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if bin, err = os.MkdirTemp("", "sluice-lb-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(bin)
	for _, program := range []string{"sluiced", "sluicectl", "sluice-lab"} {
		build := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(bin, program), "../../cmd/"+program)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building %s: %v\n%s", program, err, out)
			return 1
		}
	}
	return labtest.Run(m, plain)
}
