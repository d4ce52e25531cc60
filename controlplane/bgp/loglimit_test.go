package bgp

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	gobgplog "github.com/osrg/gobgp/v3/pkg/log"

	"github.com/ovn-sluice/sluice/pkg/loglimit"
)

// A neighbour that sends a wrong UPDATE ten thousand times does not fill the disk.
func TestLogOfAHostileNeighbor(t *testing.T) {
	var out bytes.Buffer
	l := serverLog{handles: &handles{}, log: slog.New(slog.NewTextHandler(&out, nil)), limit: &loglimit.Limit{}}
	for range 10_000 {
		l.Warn("the received Update message was treated as withdraw", gobgplog.Fields{"Topic": "Peer", "Key": "192.0.2.9", "Error": errors.New("bad origin")})
	}
	l.Warn("another event", gobgplog.Fields{"Topic": "Peer", "Key": "192.0.2.9"})
	lines := strings.Count(out.String(), "\n")
	if lines < 11 || lines > 12 || !strings.Contains(out.String(), "another event") {
		t.Errorf("%d lines:\n%s", lines, &out)
	}
}
