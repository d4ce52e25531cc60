package evpn_test

import (
	"os"
	"sync"
	"testing"

	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

// bin holds the programs under test.
var bin string

// plain is the lab of the tests that put back what they change.
var (
	plain      = labtest.NewShared(plainScenario())
	plainOnce  sync.Once
	plainReady bool
)

func plainScenario() lab.Scenario {
	s := lab.EVPN(plainParams)
	s.BFD = true // sluiced does it where a test tells it to
	return s
}

func TestMain(m *testing.M) { os.Exit(labtest.RunPrograms(m, &bin, makePrograms, plain)) }
