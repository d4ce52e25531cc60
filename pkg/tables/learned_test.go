package tables

import (
	"log/slog"
	"net/netip"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// TestLearnedRoutesStayAsLongAsTheirRoutes: what OVN has learned goes when it is known
// that it is to go, and before what it leads to.
func TestLearnedRoutesStayAsLongAsTheirRoutes(t *testing.T) {
	b := newBench()
	there := newDriver[intent.LearnedKey, intent.LearnedRoute]("learned", &b.journal)
	Drive(b.drivers, intent.LearnedRoutes, there)
	vrfs := map[uint32]intent.VNI{7: 1001}
	b.Tables = New(b.drivers, Sources{
		OVN: func() bool { return b.ovn }, BGP: func() bool { return b.bgp }, Pending: func(intent.VNI) bool { return false },
		Lingers:   func(intent.NextHopSet, func(netip.Addr) bool) bool { return b.linger },
		LearnedBy: func(table uint32) (intent.VNI, bool) { vni, ok := vrfs[table]; return vni, ok },
	}, Options{Status: b.reg, Log: slog.New(slog.DiscardHandler)})
	b.want(true)
	key := intent.LearnedKey{Table: 7, Prefix: other.Prefix}
	wanted := func(yes bool) {
		b.Pipeline.Update(func() {
			if !yes {
				b.UpdateRoutes(nil, []intent.RouteKey{other})
				Of(b, intent.LearnedRoutes).Set(nil)
				return
			}
			b.UpdateRoutes(map[intent.RouteKey]intent.Route{other: {Key: other, Kind: intent.RouteRemote}}, nil)
			Of(b, intent.LearnedRoutes).Set(map[intent.LearnedKey]intent.LearnedRoute{key: {Key: key, Via: other.Prefix.Addr()}})
		})
		b.passes(t)
	}
	wanted(true)
	if last := b.journal[len(b.journal)-1]; last != "+learned" {
		t.Errorf("OVN learned before it could use it: %v", b.journal)
	}
	stays := func(what string, ovn, bgp, linger, want bool) {
		t.Helper()
		b.ovn, b.bgp, b.linger = ovn, bgp, linger
		b.Pipeline.RelistAll()
		b.passes(t)
		if got := len(there.rows) == 1; got != want {
			t.Fatalf("%s: it stays: %t", what, got)
		}
	}
	b.bgp = false
	wanted(false)
	stays("BGP is not in sync", true, false, false, true)
	stays("its VTEP may come back", true, true, true, true)
	b.journal = nil
	stays("it is to go", true, true, false, false)
	if !slices.Equal(b.journal, []string{"-learned", "-route"}) {
		t.Errorf("removed %v", b.journal)
	}

	b.linger = true
	wanted(true)
	delete(vrfs, 7)
	b.ovn = false
	wanted(false)
	stays("OVN does not show its router, and is not in sync", false, true, false, true)
	stays("its router is elsewhere", true, true, true, false)
}
