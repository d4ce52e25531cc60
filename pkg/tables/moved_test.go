package tables

import (
	"net/netip"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// What is announced of a gateway port that has gone stays until there is a better
// route, and what carries its packets for a moment more.
func TestMoved(t *testing.T) {
	better := false
	begin := func(t *testing.T) (*bench, *time.Time) {
		b, now := newBench(), time.Now()
		b.src.Better = func(intent.RouteKey) bool { return better }
		better = false
		b.moves.now = func() time.Time { return now }
		b.want(true)
		b.passes(t)
		all, _ := Of(b, intent.Announcements).Rows()
		b.Pipeline.Update(func() { b.Moved(all) })
		b.want(false)
		b.passes(t)
		if len(b.announced.rows) != 1 || len(b.routesThere.rows) != 1 || len(b.vrfs.rows) != 1 || len(b.gateways.rows) != 1 ||
			len(b.flows.rows) != 2 || len(b.policies.rows) != 1 || len(b.bridges.rows) != 1 {
			t.Fatalf("not all is kept: %v", b.journal)
		}
		return b, &now
	}
	t.Run("a better route", func(t *testing.T) {
		b, now := begin(t)
		better = true
		b.passes(t)
		if len(b.announced.rows) != 0 || len(b.vrfs.rows) != 1 || len(b.flows.rows) != 2 {
			t.Errorf("announced %v, VRFs %v, flows %v", b.announced.rows, b.vrfs.rows, b.flows.rows)
		}
		*now = now.Add(MoveTime)
		b.passes(t)
		if len(b.vrfs.rows)+len(b.flows.rows)+len(b.bridges.rows)+len(b.policies.rows)+len(b.gateways.rows) != 0 {
			t.Errorf("something stays: %v", b.journal)
		}
	})
	t.Run("none", func(t *testing.T) {
		b, now := begin(t)
		*now = now.Add(MoveTime - time.Millisecond)
		b.passes(t)
		if len(b.announced.rows) != 1 {
			t.Error("withdrawn before its time")
		}
		*now = now.Add(time.Millisecond)
		b.passes(t)
		if len(b.announced.rows)+len(b.vrfs.rows) != 0 {
			t.Errorf("announced %v, VRFs %v", b.announced.rows, b.vrfs.rows)
		}
	})
	t.Run("back", func(t *testing.T) {
		b, now := begin(t)
		b.want(true)
		*now = now.Add(2 * MoveTime)
		b.journal = nil
		b.passes(t)
		if len(b.journal) != 0 {
			t.Errorf("a port that came back changed %v", b.journal)
		}
	})
	t.Run("gone without a move", func(t *testing.T) {
		b := newBench()
		b.want(true)
		b.passes(t)
		b.want(false)
		b.passes(t)
		if len(b.announced.rows)+len(b.vrfs.rows) != 0 {
			t.Error("something stays")
		}
	})
}

// Moves that follow each other without an end leave nothing of the first ones.
func TestMovesAreForgotten(t *testing.T) {
	b, now := newBench(), time.Now()
	b.moves.now = func() time.Time { return now }
	for i := range 100 {
		k := intent.NewHostKey(intent.VNI(i+1), netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}))
		g := intent.GatewayKey{Bridge: "br-ex", VLAN: uint16(i + 1)}
		b.Moved(map[intent.RouteKey]intent.Announcement{k: {Key: k, Gateway: g}})
		now = now.Add(MoveTime / 2)
	}
	if n := len(b.moves.routes) + len(b.moves.vrfs) + len(b.moves.gateways); n != 6 {
		t.Errorf("%d entries of 100 moves, of which two are not over", n)
	}
}
