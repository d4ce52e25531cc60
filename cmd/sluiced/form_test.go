package main

import (
	"testing"

	"github.com/ovn-sluice/sluice/pkg/config"
)

// A VRF changes its path when the neighbours have sent their routes; one that leaves
// the kernel path of the whole node, when sluice-vxlan has the UDP port as well.
func TestTurn(t *testing.T) {
	for name, row := range map[string]struct {
		path        config.Path
		sync, waits bool
		may         bool
	}{
		"neighbours have still to send": {config.PathAuto, false, false, false},
		"all is there":                  {config.PathAuto, true, false, true},
		"the port is still to come":     {config.PathAuto, true, true, false},
		"from eBPF, as a whole":         {config.PathKernel, true, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			n := &node{d: &daemon{cfg: &config.Config{Path: row.path}}}
			n.bgpSync.Store(row.sync)
			n.waits.Store(row.waits)
			if err := n.turn(); (err == nil) != row.may {
				t.Errorf("%v", err)
			}
		})
	}
}
