package bgp

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(runChild())
	}
	// The tests that run side by side mostly wait for timers, not for a processor.
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	// GoBGP's main loop has no end, so speakers run in processes of their own.
	goleak.VerifyTestMain(m)
}
