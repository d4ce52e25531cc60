package loadbalancer_test

import (
	"os"
	"testing"

	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

// bin holds the programs under test.
var bin string

// plain is the lab of the tests that put back what they change.
var plain = labtest.NewShared(lab.LB(plainParams))

func TestMain(m *testing.M) { os.Exit(labtest.RunPrograms(m, &bin, makePrograms, plain)) }
