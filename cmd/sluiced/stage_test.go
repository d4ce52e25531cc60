package main

import (
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/controlplane/learned"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/controlplane/rib"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Maps of an older layout are left when all databases and all neighbours have
// spoken, and what they said has been written.
func TestOlderMapsStayUntilTheNewAreFilled(t *testing.T) {
	d := idleDaemon()
	n := deadNode(d)
	n.rib, n.linger = rib.New(), newLinger()
	n.learned = learned.New(n.rib)
	n.tables.Pipeline.Pass(t.Context())
	route := intent.Route{Key: intent.NewRouteKey(1001, prefix("10.20.0.0/24")), Kind: intent.RouteRemote}
	n.takeImports(bgp.ImportUpdate{Upserts: []intent.Route{route}})
	d.sync(ovn.InSync{SB: true, VSwitch: true, NB: true})
	if n.toldWanted() {
		t.Error("before the neighbours' End-of-RIB")
	}
	n.takeImports(bgp.ImportUpdate{InSync: true})
	d.sync(ovn.InSync{SB: true, VSwitch: true})
	if n.toldWanted() {
		t.Error("without the Northbound database")
	}
	d.sync(ovn.InSync{SB: true, VSwitch: true, NB: true})
	if !n.toldWanted() || n.filled() {
		t.Errorf("before the first pass: all known %t, filled %t", n.toldWanted(), n.filled())
	}
	n.tables.Pipeline.Pass(t.Context())
	if !n.filled() {
		t.Error("a row that failed is waited for")
	}
}
