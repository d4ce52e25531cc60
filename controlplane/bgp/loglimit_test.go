package bgp

import (
	"bytes"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	gobgplog "github.com/osrg/gobgp/v3/pkg/log"

	"github.com/ovn-sluice/sluice/controlplane/bgp/wire"
	"github.com/ovn-sluice/sluice/pkg/loglimit"
)

// A neighbour that sends a wrong UPDATE ten thousand times does not fill the disk.
func TestLogOfAHostileNeighbor(t *testing.T) {
	var out bytes.Buffer
	l := serverLog{handles: &handles{}, log: slog.New(slog.NewTextHandler(&out, nil)), limit: &loglimit.Limit{}, leaving: new(atomic.Bool)}
	for range 10_000 {
		l.Warn("the received Update message was treated as withdraw", gobgplog.Fields{"Topic": "Peer", "Key": "192.0.2.9", "Error": errors.New("bad origin")})
	}
	l.Warn("another event", gobgplog.Fields{"Topic": "Peer", "Key": "192.0.2.9"})
	lines := strings.Count(out.String(), "\n")
	if lines < 11 || lines > 12 || !strings.Contains(out.String(), "another event") {
		t.Errorf("%d lines:\n%s", lines, &out)
	}
}

// A stop that was ordered makes no warning, neither of a session's end nor of what the BGP server
// says of it; what others do does.
func TestLogOfAnOrderedStop(t *testing.T) {
	for _, neighbor := range []string{"192.0.2.9", "2001:db8::9"} {
		for _, leaving := range []bool{false, true} {
			var out bytes.Buffer
			s, err := New(Config{ASN: 64512, RouterID: netip.MustParseAddr("192.0.2.1"), VTEP4: netip.MustParseAddr("192.0.2.1"), RouterMAC: [6]byte{2, 0, 0, 0, 0, 1},
				Neighbors: []Neighbor{{Address: netip.MustParseAddr(neighbor), ASN: 64512}}}, slog.New(slog.NewTextHandler(&out, nil)))
			if err != nil {
				t.Fatal(err)
			}
			s.leaving.Store(leaving)
			s.connection(wire.Event{Kind: wire.Ended, Neighbor: netip.MustParseAddr(neighbor), End: wire.End{Established: true, Graceful: true}})
			serverLog{handles: s.handles, log: s.log, limit: &loglimit.Limit{}, leaving: &s.leaving}.Warn("graceful restart timer expired", gobgplog.Fields{"Topic": "Peer", "Key": neighbor})
			got := out.String()
			if want := map[bool]string{true: `"BGP session closed by this node's stop"`, false: `"BGP session lost"`}[leaving]; !strings.Contains(got, want) ||
				strings.Contains(got, "level=WARN") == leaving || strings.Contains(got, "may be restarting") == leaving || !strings.Contains(got, "graceful restart timer expired") {
				t.Errorf("leaving %t:\n%s", leaving, got)
			}
		}
	}
}
