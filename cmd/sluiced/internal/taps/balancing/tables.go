package balancing

import (
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/tables"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// Drivers are those of the tables.
func Drivers(vips reconcile.Driver[intent.VIPKey, intent.VIP], neighbors reconcile.Driver[intent.NeighborKey, intent.Neighbor], taps reconcile.Driver[intent.TapClientKey, intent.TapClient]) tables.Drivers {
	d := tables.Drivers{}
	tables.Drive(d, intent.ClientVIPs, vips)
	tables.Drive(d, intent.ClientNeighbors, neighbors)
	tables.Drive(d, intent.TapClients, taps)
	return d
}

// Want makes the rows the wanted side.
func (r *Running) Want(all wanted.Set) {
	r.Tables.Pipeline.Update(func() { r.Tables.Set(all) })
}

// patch hands a step to the tables, and tells which VIPs get a Maglev table of another size. first:
// it is all that is wanted.
func (r *Running) patch(d wanted.Difference, first bool) (changes []tables.MaglevChange) {
	switch {
	case first:
		all := wanted.NewSet()
		all.Apply(d)
		r.Want(all)
	case !d.Empty():
		r.Tables.Pipeline.Update(func() {
			changes = tables.MaglevChanges(wanted.Of(d, intent.ClientVIPs).Set, tables.Of(r.Tables, intent.ClientVIPs).LookupLocked)
			r.Tables.Update(d)
		})
	}
	return changes
}
