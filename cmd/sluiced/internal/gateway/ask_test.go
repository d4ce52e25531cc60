package gateway

import (
	"errors"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// The tables of a node are not asked while they wait by order, or for what a component tells.
func TestNodeWaitsByOrder(t *testing.T) {
	g := deadGateway(t)
	for _, k := range []string{"10.0.0.0/24", "fd00::/64"} {
		key := intent.NewRouteKey(1001, prefix(k))
		g.tables.Pipeline.Update(func() {
			tables.Of(g.tables, intent.Announcements).Set(map[intent.RouteKey]intent.Announcement{key: {Key: key}})
		})
		g.tables.Pipeline.Pass(t.Context())
		broken := "sluice-vxlan is another one"
		for _, c := range []struct {
			what     string
			sync     ovn.InSync
			drained  bool
			broken   string
			programs bool
			rows     int
		}{
			{"at work", ovn.InSync{SB: true, VSwitch: true}, false, "", true, 1},
			{"Southbound is away", ovn.InSync{VSwitch: true}, false, "", true, 0},
			{"drained", ovn.InSync{SB: true, VSwitch: true}, true, "", true, 0},
			{"the fabric device is broken", ovn.InSync{SB: true, VSwitch: true}, false, broken, true, 0},
			{"programs of another build", ovn.InSync{SB: true, VSwitch: true}, false, "", false, 0},
			{"at work again", ovn.InSync{SB: true, VSwitch: true}, false, "", true, 1},
		} {
			g.sync(c.sync)
			g.withdrawn.Store(c.drained)
			var broken error
			if c.broken != "" {
				broken = errors.New(c.broken)
			}
			g.tunnel.Note(broken)
			waited := g.waited(time.Now(), c.programs)
			if len(waited) != c.rows || c.rows == 1 && (waited[0].Table != "announcements" || waited[0].Rows != 1 || waited[0].Key != key.String()) {
				t.Errorf("%s: %+v", c.what, waited)
			}
		}
	}
}
