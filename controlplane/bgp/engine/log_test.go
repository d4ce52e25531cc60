package engine

import (
	"bytes"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	gobgplog "github.com/osrg/gobgp/v3/pkg/log"

	"github.com/ovn-sluice/sluice/pkg/loglimit"
)

// A neighbour that sends a wrong UPDATE ten thousand times does not fill the disk.
func TestLogOfAHostileNeighbor(t *testing.T) {
	var out bytes.Buffer
	l := serverLog{handles: &Handles{}, log: slog.New(slog.NewTextHandler(&out, nil)), limit: &loglimit.Limit{}, leaving: new(atomic.Bool)}
	for range 10_000 {
		l.Warn("the received Update message was treated as withdraw", gobgplog.Fields{"Topic": "Peer", "Key": "192.0.2.9", "Error": errors.New("bad origin")})
	}
	l.Warn("another event", gobgplog.Fields{"Topic": "Peer", "Key": "192.0.2.9"})
	lines := strings.Count(out.String(), "\n")
	if lines < 11 || lines > 12 || !strings.Contains(out.String(), "another event") {
		t.Errorf("%d lines:\n%s", lines, &out)
	}
}

// What the server says of a stop that was ordered is no warning; what it says of others is. The
// neighbour has its own address.
func TestLogOfAnOrderedStop(t *testing.T) {
	for _, neighbor := range []string{"192.0.2.9", "2001:db8::9"} {
		for _, leaving := range []bool{false, true} {
			var out bytes.Buffer
			l := serverLog{handles: &Handles{}, log: slog.New(slog.NewTextHandler(&out, nil)), limit: &loglimit.Limit{}, leaving: new(atomic.Bool)}
			l.handles.Add(netip.MustParseAddr("127.179.0.1"), netip.MustParseAddr(neighbor))
			l.leaving.Store(leaving)
			l.Warn("graceful restart timer expired", gobgplog.Fields{"Topic": "Peer", "Key": "127.179.0.1"})
			if got := out.String(); strings.Contains(got, "level=WARN") == leaving || !strings.Contains(got, "graceful restart timer expired") || !strings.Contains(got, "neighbor="+neighbor) {
				t.Errorf("leaving %t:\n%s", leaving, got)
			}
		}
	}
}
