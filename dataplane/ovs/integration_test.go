package ovs_test

import (
	"maps"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ovs"
)

// Patch ports are named after the integration bridge, whatever its name is.
func TestIntegrationBridgeOfAnotherName(t *testing.T) {
	n := newNode(t)
	const port = "patch-provnet-4711-0815-to-br-other"
	n.run(`ovs-vsctl del-port br-ex ` + patchPort + ` -- add-port br-ex ` + port + ` -- set interface ` + port + ` type=patch options:peer=far -- set interface far options:peer=` + port)
	n.sw.SetIntegration("br-other")
	n.ensure()
	n.until("the patch port has a number", func() bool {
		b, err := n.sw.Bridge("br-ex")
		if err != nil {
			return false
		}
		for _, p := range b.Ports {
			if p.Name == port {
				return p.Number != 0
			}
		}
		return false
	})
	d, want := ovs.NewSteering(n.sw), rowsOf("br-ex", 0)
	n.apply(d, want)
	if got := n.list(d); !maps.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	n.sw.SetIntegration("")
	for k, v := range n.list(d) {
		if v == want[k] {
			t.Errorf("%s is listed as it was, with a patch port to another bridge", k)
		}
	}
}
