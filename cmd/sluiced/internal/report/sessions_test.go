package report

import (
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// An answer that has no room for all sessions tells how many there are.
func TestSessionChoice(t *testing.T) {
	vnis := []intent.VNI{1001, 1002}
	flow := func(vni int, toVIP bool) ebpf.Flow {
		return ebpf.Flow{Key: ebpf.FlowKey{VNI: vnis[vni]}, ToVIP: toVIP}
	}
	all := []ebpf.Flow{flow(0, true), flow(0, false), flow(1, true), flow(0, true), flow(1, true), flow(0, true), flow(1, false)}
	for _, tt := range []struct{ vni, most, listed, known int }{
		{-1, 10, 5, 5}, {-1, 5, 5, 5}, {-1, 4, 4, 5}, {0, 2, 2, 3}, {1, 2, 2, 2}, {1, 0, 0, 2},
	} {
		c := sessionChoice{most: tt.most}
		if tt.vni >= 0 {
			c.vni = vnis[tt.vni]
		}
		listed := 0
		for _, f := range all {
			if c.takes(f) {
				listed++
			}
		}
		if listed != tt.listed || c.known != tt.known {
			t.Errorf("%+v: %d listed, %d known", tt, listed, c.known)
		}
	}
}
