package bgp

import (
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/osrg/gobgp/v3/pkg/server"

	"github.com/ovn-sluice/sluice/pkg/loglimit"
)

// The BGP server of this version takes connections that it is given: without that each
// session of a start waits for the server's connect timer.
func TestServerTakesConnections(t *testing.T) {
	srv := server.NewBgpServer(server.LoggerOption(serverLog{log: slog.New(slog.DiscardHandler), handles: &handles{}, limit: &loglimit.Limit{}, leaving: new(atomic.Bool)}))
	if handover(srv) == nil {
		t.Error("it has no queue of accepted connections")
	}
}
