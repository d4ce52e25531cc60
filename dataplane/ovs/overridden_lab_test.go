package ovs_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/ovs"
)

// A flow of another that comes before ours is told of, and named as long as it is
// there.
func TestOverridden(t *testing.T) {
	n := newNode(t)
	n.ensure()
	n.apply(ovs.NewSteering(n.sw), rowsOf("br-ex", 0))
	until := func(what string, want ...string) {
		t.Helper()
		for end := time.After(deadline); ; {
			select {
			case <-n.sw.FlowsChanged():
			case <-end:
				t.Fatalf("not told: %s", what)
			}
			got, err := n.sw.Overridden(context.Background())
			if err == nil && len(got) == len(want) && (len(want) == 0 || strings.HasPrefix(got[0], want[0])) {
				return
			}
		}
	}
	until("there is none")
	number := strings.TrimSpace(n.run("ovs-vsctl get interface " + patchPort + " ofport"))
	mgmt := " unix:" + n.path("br-ex.mgmt")
	n.run("ovs-ofctl -O OpenFlow14 add-flow" + mgmt + " cookie=0x3e7,priority=900,ip,in_port=" + number + ",actions=NORMAL")
	until("a flow of priority 900", "br-ex: cookie=0x3e7, priority=900,")
	n.run("ovs-ofctl -O OpenFlow14 del-flows" + mgmt + " cookie=0x3e7/-1")
	until("it is gone")
}
