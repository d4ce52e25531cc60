package bgp

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(runChild())
	}
	// GoBGP's main loop has no end, so speakers run in processes of their own.
	goleak.VerifyTestMain(m)
}
