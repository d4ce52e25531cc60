package bgp

import (
	"log/slog"
	"net/netip"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/bfd"
)

// What BFD says while BGP waits for its port takes no more room than there are
// neighbours, and a path that was lost meanwhile ends the session although it is back.
func TestNewsOfPathsAreOnePerNeighbor(t *testing.T) {
	a, b, stranger := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("fe80::1%lo"), netip.MustParseAddr("192.0.2.9")
	s, err := New(nodeConfig(1, Neighbor{Address: a, ASN: 65001, BFD: BFDFollow}, Neighbor{Address: b, ASN: 65001, BFD: BFDStrict}), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	take := func() []netip.Addr {
		s.in.mu.Lock()
		defer s.in.mu.Unlock()
		return s.takePathsLocked()
	}
	for range 10_000 {
		s.PathChanged(a, bfd.PathLost)
		s.PathChanged(a, bfd.PathUp)
		s.PathChanged(b, bfd.PathUp)
		s.PathChanged(stranger, bfd.PathLost)
	}
	if n := len(s.paths.news); n != 3 {
		t.Errorf("%d news of three neighbours", n)
	}
	s.sync[a].established, s.sync[b].established = true, true
	if lost := take(); !slices.Equal(lost, []netip.Addr{a}) || s.sync[a].path != bfd.PathUp || s.sync[b].held() {
		t.Errorf("lost: %v, paths %s and %s", lost, s.sync[a].path, s.sync[b].path)
	}
	if lost := take(); lost != nil {
		t.Errorf("told twice: %v", lost)
	}
}
