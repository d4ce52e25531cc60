package ovn

import (
	"context"
	"slices"
	"testing"
)

// The gateway port of another node is found with its chassis and its router's
// networks, though this node follows none of its rows.
func TestGatewaysWith(t *testing.T) {
	l := newLab(t)
	l.provider("provnet", "physnet1")
	l.tenant(1, "provnet", "a2")
	l.tenant(2, "provnet", "a1")
	l.tenant(3, "provnet")
	for port, vni := range map[string]string{"sgw-r1": "1001", "sin-r1": "1001", "sgw-r2": "1002", "sin-r3": "1003"} {
		l.nb("set", "logical_switch_port", port, `external_ids:neutron_bgpvpn\:vni=`+vni)
	}
	w := l.follow(Config{})
	w.until("the node is in sync", func() bool { return true })
	for vni, want := range map[string]string{"1001": "cr-gw-r1 a2", "1002": "cr-gw-r2 a1", "1003": "", "9999": ""} {
		var got []Gateway
		l.waitFor("an answer about "+vni, func() bool {
			var err error
			if got, err = w.GatewaysWith(t.Context(), "neutron_bgpvpn:vni", vni); err != nil {
				t.Fatal(err)
			}
			return want == "" || len(got) > 0
		})
		var words []string
		for _, g := range got {
			words = append(words, g.Port+" "+g.Chassis)
			if g.Router == "" {
				t.Errorf("%s: no router", g.Port)
			}
			if !slices.ContainsFunc(g.MACs, func(m []string) bool { return slices.ContainsFunc(m, func(s string) bool { return len(s) > 20 }) }) {
				t.Errorf("%s: no network: %v", g.Port, g.MACs)
			}
		}
		if want == "" && len(words) != 0 || want != "" && !slices.Equal(words, []string{want}) {
			t.Errorf("VNI %s: %q, want %q", vni, words, want)
		}
	}
	f, err := NewFollower(Config{VSwitch: "unix:/nowhere", Handle: func(Event) {}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.GatewaysWith(context.Background(), "k", "v"); err == nil {
		t.Error("an answer without a session")
	}
}
