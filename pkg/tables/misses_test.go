package tables

import (
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Maps that were forwarding are not left while a node that they lead to may come back.
func TestMisses(t *testing.T) {
	b := newBench()
	b.want(true)
	check := func(when string, key intent.RouteKey, want bool) {
		t.Helper()
		if got := b.Misses(map[intent.RouteKey]intent.NextHopSet{key: intent.NewNextHopSet()}); got != want {
			t.Errorf("%s: %t", when, got)
		}
	}
	check("nobody may come back", other, false)
	b.linger = true
	check("a node may come back", other, true)
	elsewhere := other
	elsewhere.VNI = 4711
	check("in a VRF that has gone", elsewhere, false)
	b.Pipeline.Update(func() {
		b.UpdateRoutes(map[intent.RouteKey]intent.Route{other: {Key: other, Kind: intent.RouteRemote}}, nil)
	})
	check("it is back", other, false)
}
