package loadbalancer_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

// bin holds the programs under test.
var bin string

// plain is the lab of the tests that put back what they change.
var plain = labtest.NewShared(lab.LB(plainParams))

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if bin, err = os.MkdirTemp("", "sluice-lb-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(bin)
	if err := makePrograms(bin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return labtest.Run(m, plain)
}
