package gateway

import (
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/capability"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// Without CAP_NET_RAW a node works, and warns of what it does not learn.
func TestLackingCapabilities(t *testing.T) {
	const mtu, routers = "path MTUs are not learned", "bgp.neighbors[].interface"
	link := []config.Neighbor{{Interface: "eth1"}}
	for name, tt := range map[string]struct {
		has       capability.Set
		set       uint16
		neighbors []config.Neighbor
		want      []string
	}{
		"there":                     {1 << capability.NetRaw, 0, link, nil},
		"not there":                 {1 << capability.SysAdmin, 0, nil, []string{mtu}},
		"and a neighbour by link":   {0, 0, link, []string{mtu, routers}},
		"that alone":                {0, 9000, link, []string{routers}},
		"the MTU is set":            {0, 9000, []config.Neighbor{{Address: addr("192.0.2.1")}}, nil},
		"IPv6, and the MTU unknown": {0, 0, []config.Neighbor{{Address: addr("2001:db8::1")}}, []string{mtu}},
	} {
		cfg := config.Default()
		cfg.Fabric.MTU, cfg.BGP.Neighbors = tt.set, tt.neighbors
		got := lackingCapabilities(tt.has, cfg)
		if len(got) != min(len(tt.want), 1) {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		for _, o := range got {
			if o.Key != "CAP_NET_RAW" || o.State != status.Warning || o.Reason != reason.MissingCapability {
				t.Errorf("%s: %+v", name, o)
			}
			for _, word := range []string{mtu, routers} {
				want := word == tt.want[0] || word == tt.want[len(tt.want)-1]
				if strings.Contains(o.Error, word) != want {
					t.Errorf("%s: %s", name, o.Error)
				}
			}
		}
	}
}
