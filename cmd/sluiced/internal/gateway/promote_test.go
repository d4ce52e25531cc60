package gateway

import (
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Maps of an older layout are left when all databases and all neighbours have
// spoken, and what they said has been written.
func TestOlderMapsStayUntilTheNewAreFilled(t *testing.T) {
	g := deadGateway(t)
	g.tables.Pipeline.Pass(t.Context())
	route := intent.Route{Key: intent.NewRouteKey(1001, prefix("10.20.0.0/24")), Kind: intent.RouteRemote}
	g.takeImports(bgp.ImportUpdate{Upserts: []intent.Route{route}})
	g.sync(ovn.InSync{SB: true, VSwitch: true, NB: true})
	if g.ToldWanted() {
		t.Error("before the neighbours' End-of-RIB")
	}
	g.takeImports(bgp.ImportUpdate{InSync: true})
	g.sync(ovn.InSync{SB: true, VSwitch: true})
	if g.ToldWanted() {
		t.Error("without the Northbound database")
	}
	g.sync(ovn.InSync{SB: true, VSwitch: true, NB: true})
	if !g.ToldWanted() || g.filled() {
		t.Errorf("before the first pass: all known %t, filled %t", g.ToldWanted(), g.filled())
	}
	g.tables.Pipeline.Pass(t.Context())
	if !g.filled() {
		t.Error("a row that failed is waited for")
	}
}
