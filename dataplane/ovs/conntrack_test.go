package ovs

import (
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/vswitch"
)

func TestConntrackFails(t *testing.T) {
	for version, want := range map[string]bool{
		"2.13.8": true, "2.17.7": true, "2.17.8": false, "2.17.12": false, "3.0.4": true, "3.0.5": false,
		"3.1.0": true, "3.1.2-dev": true, "3.1.3": false, "3.2.2": true, "3.2.3": false, "3.3.0": false, "3.5.0": false, "4.0.0": false,
		"3.1": true, "3.1.0-2+deb12u1": true, "": false, "unknown": false, "3.x": false,
	} {
		if got := conntrackFails(version); got != want {
			t.Errorf("%q: %v", version, got)
		}
	}
}

func TestConntrackFault(t *testing.T) {
	for _, tt := range []struct {
		bridge, datapath, version string
		want                      bool
	}{
		{"br-int", "netdev", "3.1.0", true},
		{"br-int", "netdev", "3.3.0", false},
		{"br-int", "system", "3.1.0", false},
		{"br-ex", "netdev", "3.1.0", false},
	} {
		s := New(Config{})
		s.Handle(ovsdb.Batch{InSync: true, Changes: []ovsdb.Change{
			{Table: vswitch.BridgeTable, UUID: "b", New: &vswitch.Bridge{UUID: "b", Name: tt.bridge, DatapathType: tt.datapath}},
			{Table: vswitch.OpenvSwitchTable, UUID: "o", New: &vswitch.OpenvSwitch{UUID: "o", OVSVersion: &tt.version}},
		}})
		if got := s.ConntrackFault(); (got != "") != tt.want || tt.want && !strings.Contains(got, tt.version) {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}
