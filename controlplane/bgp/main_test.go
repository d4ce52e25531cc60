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
	goleak.VerifyTestMain(m,
		// GoBGP's main loop has no end: StopBgp leaves it waiting for commands.
		goleak.IgnoreTopFunction("github.com/osrg/gobgp/v3/pkg/server.(*BgpServer).Serve"),
		goleak.IgnoreAnyFunction("github.com/osrg/gobgp/v3/pkg/server.(*BgpServer).Serve"),
		goleak.IgnoreAnyFunction("reflect.Select"),
	)
}
