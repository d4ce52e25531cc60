package bgp

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/bgp/wire"
)

// A session's end by a stop that was ordered makes no warning; one that others end does.
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
			got := out.String()
			if want := map[bool]string{true: `"BGP session closed by this node's stop"`, false: `"BGP session lost"`}[leaving]; !strings.Contains(got, want) ||
				strings.Contains(got, "level=WARN") == leaving || strings.Contains(got, "may be restarting") == leaving {
				t.Errorf("leaving %t:\n%s", leaving, got)
			}
		}
	}
}
