package gateway

import (
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// Before OVN is in sync plain unicast is told, and nothing of OVN's; what is exposed is
// plain unicast of OVN's.
func TestWhatIsToldBeforeOVNIsInSync(t *testing.T) {
	g := deadGateway(t)
	g.tables.Pipeline.Pass(t.Context())
	g.underlay.Tables().Pipeline.Pass(t.Context())
	if !g.Told().Unicast || g.Told().Policies || g.Told().All {
		t.Errorf("%+v", g.Told())
	}
	g.cfg.Exposure.Ports = config.SwitchOn
	if g.Told().Unicast {
		t.Error("exposed addresses are still to come")
	}
	g.sync(ovn.InSync{SB: true, VSwitch: true})
	if !g.Told().Policies || g.Told().All {
		t.Errorf("without the Northbound database: policies %t, all %t", g.Told().Policies, g.Told().All)
	}
	g.tables.Pipeline.Update(func() { tables.Of(g.tables, intent.Policies).Set(map[intent.VNI]intent.VRFPolicy{1001: {VNI: 1001}}) })
	if g.Told().Policies {
		t.Error("a policy has still to be handed over")
	}
}
