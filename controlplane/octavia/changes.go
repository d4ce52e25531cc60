package octavia

import (
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia/network"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
)

// readChanges are the changes between two snapshots, and whether they make a difference to who reads
// them, for Watch.Touched. Of the ports of a switch those of routers are read (network.
// RouterPorts peeks at the others): ports of VMs come and go all the time. A port may become a
// router's, or cease to be one, while the row of its switch stays: that is a change of the switch.
func readChanges(before, after *northbound.Snapshot) (changes []ovsdb.Change, judge func(ovsdb.Change, string, bool) bool) {
	changes = northbound.Changes(before, after)
	written, retyped := map[string]bool{}, map[string]bool{}
	for _, c := range changes {
		if c.Table == nb.LogicalSwitchTable {
			written[c.UUID] = true
		}
	}
	for _, c := range changes {
		if c.Table != nb.LogicalSwitchPortTable || len(network.RouterPorts(before, []string{c.UUID})) == len(network.RouterPorts(after, []string{c.UUID})) {
			continue
		}
		for _, ls := range northbound.Find(after, northbound.SwitchOfPort, c.UUID, "ports") {
			retyped[ls.UUID] = true
			if old, was := northbound.Get[*nb.LogicalSwitch](before, ls.UUID); was && !written[ls.UUID] {
				written[ls.UUID] = true
				changes = append(changes, ovsdb.Change{Table: nb.LogicalSwitchTable, UUID: ls.UUID, Old: old, New: ls})
			}
		}
	}
	return changes, func(c ovsdb.Change, column string, differs bool) bool {
		switch {
		case c.Table != nb.LogicalSwitchTable || column != "ports":
			return differs
		case retyped[c.UUID] || !differs:
			return retyped[c.UUID]
		}
		return !slices.Equal(network.RouterPorts(before, c.Old.(*nb.LogicalSwitch).Ports), network.RouterPorts(after, c.New.(*nb.LogicalSwitch).Ports))
	}
}
