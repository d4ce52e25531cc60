package main

import (
	"maps"
	"sync/atomic"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/tables"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// pendingVRFs are the VRFs of which Northbound rows are still to come. They are
// found where the translator is guarded, and asked for where it is not.
type pendingVRFs struct {
	set atomic.Pointer[map[intent.VNI]intent.VRF]
}

func (p *pendingVRFs) all() map[intent.VNI]intent.VRF {
	if set := p.set.Load(); set != nil {
		return *set
	}
	return nil
}

func (p *pendingVRFs) has(vni intent.VNI) bool { _, ok := p.all()[vni]; return ok }

// become replaces the set.
func (p *pendingVRFs) become(next map[intent.VNI]intent.VRF) { p.set.Store(&next) }

// widen adds to the set.
func (p *pendingVRFs) widen(more map[intent.VNI]intent.VRF) {
	next := maps.Clone(more)
	maps.Copy(next, p.all())
	p.become(next)
}

// pendingOf are those of the VRFs that wait for Northbound rows.
func pendingOf(waits func(intent.VNI) bool, vrfs map[intent.VNI]intent.VRF) map[intent.VNI]intent.VRF {
	out := map[intent.VNI]intent.VRF{}
	for vni, v := range vrfs {
		if waits(vni) {
			out[vni] = v
		}
	}
	return out
}

// pendingAfter are the VRFs that wait after a step. With the Northbound database
// in sync none begins to.
func (n *node) pendingAfter(waits func(intent.VNI) bool, nbInSync bool, d wanted.Difference) map[intent.VNI]intent.VRF {
	if nbInSync {
		return pendingOf(waits, n.pending.all())
	}
	vrfs, _ := tables.Of(n.tables, intent.VRFs).Rows()
	maps.Copy(vrfs, wanted.Of(d, intent.VRFs).Set)
	return pendingOf(waits, vrfs)
}
