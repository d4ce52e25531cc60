package moves

import (
	"maps"
	"sync/atomic"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/tables"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// Pending are the VRFs of which Northbound rows are still to come. They are
// found where the translator is guarded, and asked for where it is not.
type Pending struct {
	set atomic.Pointer[map[intent.VNI]intent.VRF]
}

func (p *Pending) all() map[intent.VNI]intent.VRF {
	if set := p.set.Load(); set != nil {
		return *set
	}
	return nil
}

// Has tells whether a VRF is one of them.
func (p *Pending) Has(vni intent.VNI) bool { _, ok := p.all()[vni]; return ok }

// Become replaces the set.
func (p *Pending) Become(next map[intent.VNI]intent.VRF) { p.set.Store(&next) }

// Widen adds to the set.
func (p *Pending) Widen(more map[intent.VNI]intent.VRF) {
	next := maps.Clone(more)
	maps.Copy(next, p.all())
	p.Become(next)
}

// PendingOf are those of the VRFs that wait for Northbound rows.
func PendingOf(waits func(intent.VNI) bool, vrfs map[intent.VNI]intent.VRF) map[intent.VNI]intent.VRF {
	out := map[intent.VNI]intent.VRF{}
	for vni, v := range vrfs {
		if waits(vni) {
			out[vni] = v
		}
	}
	return out
}

// After are the VRFs that wait after a step. With the Northbound database
// in sync none begins to.
func (p *Pending) After(waits func(intent.VNI) bool, nbInSync bool, t *tables.Tables, d wanted.Difference) map[intent.VNI]intent.VRF {
	if nbInSync {
		return PendingOf(waits, p.all())
	}
	vrfs, _ := tables.Of(t, intent.VRFs).Rows()
	maps.Copy(vrfs, wanted.Of(d, intent.VRFs).Set)
	return PendingOf(waits, vrfs)
}
