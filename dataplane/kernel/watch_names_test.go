package kernel

import "testing"

func TestWatchedNames(t *testing.T) {
	for name, want := range map[string]bool{
		"sluice-vxlan": true, "sluice0": true, vrfOf(1001).name: true, bridgeOf(1001).name: true, innerOf(16777215).name: true,
		outerOf(7).name: true, vxlanOf(7).name: true, dummyOf(7).name: true, endName(7, 1): true, bridgeEndName(7, 1): true,
		"br-int": false, "br-ex": false, "eth0": false, "lo": false, "vrf-": false, "tap0": false,
	} {
		if got := maySluices(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
