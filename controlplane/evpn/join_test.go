package evpn

import (
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// What another translation is told of the tenants here.
func TestTenantsAreTold(t *testing.T) {
	x := NewTranslator(Config{}, indices{}, &loadbalancer.Book{})
	rows := node(false).tenant(1, 1001).load()
	x.Step(rows, ovn.Dirty{All: true}, true)
	key := intent.GatewayKey{Bridge: "br-ex", MAC: intent.MAC{2, 0, 0, 0, 0, 1}}
	if vni, ok := x.GatewayVRF(key); !ok || vni != 1001 {
		t.Errorf("the gateway port is of VRF %s, %v", vni, ok)
	}
	match := x.Match(1001)
	for a, want := range map[string]string{"10.10.0.5": "10.10.0.5/32", "10.10.0.99": "10.10.0.0/24", "172.24.4.1": "172.24.4.1/32", "172.24.4.60": "", "2001:db8:10::5": "2001:db8:10::5/128", "2001:db8:10::9": "2001:db8:10::/64"} {
		r, ok := match(netip.MustParseAddr(a))
		if ok != (want != "") || ok && (r.Key.Prefix.String() != want || r.Kind != intent.RouteLocal || r.Gateway != key) {
			t.Errorf("%s matches %+v, %v, want %s", a, r, ok, want)
		}
	}
	if _, ok := x.Match(7)(netip.MustParseAddr("10.10.0.5")); ok {
		t.Error("a VRF that nobody has matches")
	}
	other := key
	other.VLAN = 7
	if _, ok := x.GatewayVRF(other); ok {
		t.Error("a key that nobody has is a tenant's")
	}
	if !x.HasBridge("br-ex") || x.HasBridge("br-two") {
		t.Error("bridges")
	}
}
