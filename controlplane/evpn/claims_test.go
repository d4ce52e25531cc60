package evpn

import (
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// The VNIs of routers that are nowhere near this node show on the provider network.
func TestClaims(t *testing.T) {
	c := node(false).tenant(1, 1001)
	other := pb("lsp-gw-other", ovn.TypePatch, "ls-public", "router")
	other.ExternalIDs = map[string]string{keyVNI: "1001", keyTargets: "64512:7"}
	rows := c.load()
	rows.Apply([]ovn.Change{ovn.Set(other)})
	tr := NewTranslator(testConfig(), indices{}, &loadbalancer.Book{})
	tr.Step(rows, ovn.Dirty{All: true}, true)
	rt, _ := intent.ParseRouteTarget("64512:7")
	found := map[bool]int{}
	for _, claim := range tr.Claims() {
		if claim.VNI != 1001 {
			t.Errorf("%+v", claim)
		}
		foreign := claim.Policy.Export == intent.NewRouteTargets(rt) && !claim.Policy.AutoImport && claim.Port == "lsp-gw-other"
		found[foreign]++
	}
	if found[true] != 1 || found[false] == 0 {
		t.Errorf("claims %+v", tr.Claims())
	}
}
