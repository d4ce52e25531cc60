package evpn

import (
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/controlplane/vrfindex"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// A router whose VNI becomes that of a tenant that runs gets the error, whatever its name
// and whether or not the node has started meanwhile; when the tenant goes, it takes its place.
func TestNewcomerGetsTheError(t *testing.T) {
	for name, other := range map[string]struct {
		edit   func(*ovn.PortBinding)
		reason string
	}{
		"with the tenant's route targets": {func(*ovn.PortBinding) {}, reason.Overlap},
		"with route targets of its own": {func(p *ovn.PortBinding) {
			p.ExternalIDs["neutron_bgpvpn:rt"] = "64999:77"
		}, reason.VRFConflict},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir() + "/vrf.json"
			open := func() *vrfindex.Store {
				s, err := vrfindex.Open(path, nil)
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			// The one that runs is the last by name.
			c, alloc := node(false).tenant(1, 2001).tenant(2, 1001), open()
			tr := NewTranslator(testConfig(), alloc, &loadbalancer.Book{})
			tr.Step(c.load(), ovn.Dirty{All: true}, true)
			runs := func(what string, tr *Translator, router string) {
				t.Helper()
				for k, r := range wanted.Rows(tr.Tables(), intent.Routes) {
					if g := wanted.Rows(tr.Tables(), intent.Gateways)[r.Gateway]; k.VNI == 1001 && r.Kind == intent.RouteLocal && k.Prefix.Bits() != 32 && k.Prefix.Bits() != 128 && g.LogicalPort != "cr-lrp-gw-"+router {
						t.Errorf("%s: %s leads to %s", what, k, g.LogicalPort)
					}
				}
				if !slices.ContainsFunc(tr.Errors(), func(e ObjectError) bool { return e.Reason == other.reason }) {
					t.Errorf("%s: errors %v", what, tr.Errors())
				}
			}
			annotate := func(router, vni string) {
				for _, port := range []string{"gw-" + router, "in-" + router} {
					c.edit(port, func(p *ovn.PortBinding) {
						p.ExternalIDs["neutron_bgpvpn:vni"] = vni
						if router == "r1" {
							other.edit(p)
						}
					})
				}
			}
			annotate("r1", "1001")
			tr.Step(c.load(), ovn.Dirty{All: true}, true)
			runs("the newcomer comes", tr, "r2")
			if err := alloc.Commit(); err != nil {
				t.Fatal(err)
			}
			alloc = open()
			tr = NewTranslator(testConfig(), alloc, &loadbalancer.Book{})
			tr.Step(c.load(), ovn.Dirty{All: true}, true)
			runs("after a restart", tr, "r2")
			annotate("r2", "2001")
			tr.Step(c.load(), ovn.Dirty{All: true}, true)
			annotate("r2", "1001")
			tr.Step(c.load(), ovn.Dirty{All: true}, true)
			runs("the first one has left and come back", tr, "r1")
		})
	}
}
