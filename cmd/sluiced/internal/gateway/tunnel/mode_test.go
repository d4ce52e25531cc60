package tunnel

import (
	"testing"
)

// A VRF that leaves the kernel path of the whole node waits until sluice-vxlan has the UDP port.
func TestTurn(t *testing.T) {
	for name, row := range map[string]struct{ perVRF, preparing, may bool }{
		"the port is there":         {false, false, true},
		"the port is still to come": {false, true, false},
		"from eBPF, as a whole":     {true, true, true},
	} {
		tn := Tunnel{cfg: Config{PerVRF: row.perVRF}}
		tn.preparing.Store(row.preparing)
		if err := tn.Turn(); (err == nil) != row.may {
			t.Errorf("%s: %v", name, err)
		}
	}
}
