package restart

import (
	"context"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// After a restart the routes of a node that is restarting too stay until it has
// announced all of them, one after the other, and no longer.
func TestRoutesOfARestartingNodeLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back, away := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
		shown := map[netip.Addr]bool{}
		l := NewStaleRoutes()
		var looks atomic.Int32
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = l.Run(ctx, func() { looks.Add(1) }) }()
		keeps := func(vteps ...netip.Addr) bool {
			var hops []intent.NextHop
			for _, a := range vteps {
				hops = append(hops, intent.NextHop{VTEP: a})
			}
			return l.Keeps(intent.NewNextHopSet(hops...), func(a netip.Addr) bool { return shown[a] })
		}
		check := func(when string, wantBack, wantAway, wantBoth bool) {
			t.Helper()
			synctest.Wait()
			if b, a, both := keeps(back), keeps(away), keeps(back, away); b != wantBack || a != wantAway || both != wantBoth {
				t.Errorf("%s: kept are the routes of the one that is back %t, of the other %t, of both %t", when, b, a, both)
			}
		}
		check("before BGP is in sync", false, false, false)
		l.Note(bgp.ImportUpdate{InSync: true})
		check("in sync, without either", true, true, true)
		time.Sleep(10 * time.Second)
		shown[back] = true
		l.Note(bgp.ImportUpdate{InSync: true, VTEPs: []intent.VTEP{{Addr: back}}})
		check("with the first route of the one", true, true, true)
		time.Sleep(bgp.ReturnTime - time.Millisecond)
		l.Note(bgp.ImportUpdate{InSync: true, Upserts: []intent.Route{{NextHops: intent.NewNextHopSet(intent.NextHop{VTEP: back})}}})
		time.Sleep(bgp.ReturnTime - time.Millisecond)
		check("shortly after its next one", true, true, true)
		time.Sleep(10 * time.Millisecond)
		check("when no more came", false, true, false)
		if looks.Load() != 1 {
			t.Errorf("looked at %d times, want once", looks.Load())
		}
		time.Sleep(lingerTime)
		check("when the time is over", false, false, false)
		if looks.Load() != 2 {
			t.Errorf("looked at %d times, want twice", looks.Load())
		}
		shown[away] = true
		l.Note(bgp.ImportUpdate{InSync: true, VTEPs: []intent.VTEP{{Addr: away}}})
		check("and for what comes later", false, false, false)
	})
}
