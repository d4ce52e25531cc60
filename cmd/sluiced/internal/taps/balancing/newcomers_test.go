package balancing

import (
	"maps"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/tapbalancing"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// A VM whose row is new has come from another node, unless it was here without a tap.
func TestNewcomers(t *testing.T) {
	ovn := loadbalancer.Choice{Path: loadbalancer.PathOVN}
	byOVN := balancedByOVN([]tapbalancing.VM{
		{Port: "without a tap", Choice: ovn, State: status.OK},
		{Port: "unclear", Choice: ovn, State: status.Warning},
		{Port: "not yet", Choice: ovn, State: status.Pending},
		{Port: "by ACLs", Choice: ovn, State: status.OK, Tap: intent.Tap{IfIndex: 9}},
	})
	if want := (map[string]bool{"without a tap": true, "unclear": true}); !maps.Equal(byOVN, want) {
		t.Errorf("OVN balances %v, want %v", byOVN, want)
	}
	key := func(index uint32) intent.TapClientKey { return intent.TapClientKey{IfIndex: index} }
	set := map[intent.TapClientKey]intent.TapClient{}
	for i := range uint32(5) {
		set[key(i)] = intent.TapClient{Key: key(i)}
	}
	now := func() []tapbalancing.VM {
		return []tapbalancing.VM{
			{Port: "without a tap", Tap: intent.Tap{IfIndex: 1}}, {Port: "not yet", Tap: intent.Tap{IfIndex: 2}},
			{Port: "unclear", Tap: intent.Tap{IfIndex: 3}}, {Port: "new", Tap: intent.Tap{IfIndex: 4}},
		}
	}
	got := newcomers(set, func(k intent.TapClientKey) bool { return k.IfIndex == 0 }, byOVN, now)
	want := map[intent.TapClientKey]intent.Before{key(1): intent.BeforeOVN, key(2): intent.BeforeNode, key(3): intent.BeforeOVN, key(4): intent.BeforeNode}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
