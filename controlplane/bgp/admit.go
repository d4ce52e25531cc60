package bgp

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
)

// Reasons for which a VRF does not take a route that carries one of its route
// targets. Unlike the others they are one VRF's: another may take it.
const (
	ReasonFiltered    Reason = reason.RouteFiltered
	ReasonMaxPrefixes Reason = reason.RouteMaxPrefixes
)

// VRFImport limits what enters a VRF.
type VRFImport struct {
	// MaxPrefixes is the most rows that are imported. Those that are in stay; others
	// wait until there is room. 0: no limit.
	MaxPrefixes uint32
	// Filter is asked in order: the first rule that matches a prefix decides. A
	// prefix that none matches is denied, unless there is no rule at all.
	Filter []PrefixRule
}

// PrefixRule permits or denies prefixes within Prefix whose length is from GE to
// LE. Without both only Prefix itself matches; without LE every length from GE on
// does, without GE every one up to LE.
type PrefixRule struct {
	Permit bool
	Prefix netip.Prefix
	GE, LE uint8
}

func (r PrefixRule) matches(p netip.Prefix) bool {
	least, most := r.Prefix.Bits(), r.Prefix.Bits()
	if r.GE != 0 {
		least, most = int(r.GE), p.Addr().BitLen()
	}
	if r.LE != 0 {
		most = int(r.LE)
	}
	return r.Prefix.Contains(p.Addr()) && p.Bits() >= least && p.Bits() <= most && p.Bits() >= r.Prefix.Bits()
}

func (v VRFImport) permits(p netip.Prefix) bool {
	for _, r := range v.Filter {
		if r.matches(p) {
			return r.Permit
		}
	}
	return len(v.Filter) == 0
}

// refusals are the prefixes that a VRF does not take, and how often that began.
type refusals struct {
	filtered, waiting           set[netip.Prefix]
	filteredTotal, waitingTotal uint64
}

func (r *refusals) of(p netip.Prefix) Reason {
	if r == nil {
		return ""
	}
	if _, ok := r.filtered[p]; ok {
		return ReasonFiltered
	}
	if _, ok := r.waiting[p]; ok {
		return ReasonMaxPrefixes
	}
	return ""
}

// refuse notes why a VRF does not take a prefix; "" that it does, or has no path.
func (r *rib) refuse(k intent.RouteKey, why Reason) {
	v := r.refused[k.VNI]
	old := v.of(k.Prefix)
	if old == why {
		return
	}
	if v == nil {
		v = &refusals{filtered: set[netip.Prefix]{}, waiting: set[netip.Prefix]{}}
		r.refused[k.VNI] = v
	}
	delete(v.filtered, k.Prefix)
	delete(v.waiting, k.Prefix)
	switch why {
	case ReasonFiltered:
		v.filtered[k.Prefix] = struct{}{}
		v.filteredTotal++
	case ReasonMaxPrefixes:
		v.waiting[k.Prefix] = struct{}{}
		v.waitingTotal++
	}
}

// full tells whether a VRF has as many rows as it may.
func (r *rib) full(vni intent.VNI) bool {
	most := r.limits[vni].MaxPrefixes
	return most > 0 && len(r.routes[vni]) >= int(most)
}

// nextWaiting has a prefix looked at that waits for room, if there is room.
func (r *rib) nextWaiting(vni intent.VNI) {
	v := r.refused[vni]
	if v == nil || r.full(vni) {
		return
	}
	for p := range v.waiting {
		r.dirty[intent.RouteKey{VNI: vni, Prefix: p}] = struct{}{}
		return
	}
}

// markRefused has what a VRF refused looked at again.
func (r *rib) markRefused(vni intent.VNI) {
	if v := r.refused[vni]; v != nil {
		for _, prefixes := range []set[netip.Prefix]{v.filtered, v.waiting} {
			for p := range prefixes {
				r.dirty[intent.RouteKey{VNI: vni, Prefix: p}] = struct{}{}
			}
		}
	}
}

// refusedBy is a copy of what each VRF refuses now.
func (r *rib) refusedBy() map[intent.VNI]*refusals {
	out := make(map[intent.VNI]*refusals, len(r.refused))
	for vni, v := range r.refused {
		c := *v
		c.filtered, c.waiting = maps.Clone(v.filtered), maps.Clone(v.waiting)
		out[vni] = &c
	}
	return out
}

// VRFStatus is what became of the routes with one VRF's route targets.
type VRFStatus struct {
	// Imported, Filtered and Waiting count prefixes: taken, denied by the filter,
	// and left out since the VRF has MaxPrefixes already.
	Imported, Filtered, Waiting int
	MaxPrefixes                 uint32
	// FilteredTotal and WaitingTotal count since the start.
	FilteredTotal, WaitingTotal uint64
}

// vrfStatus is that of every VRF that is there, or has refused something.
func (r *rib) vrfStatus() map[intent.VNI]VRFStatus {
	out := map[intent.VNI]VRFStatus{}
	for _, vni := range slices.AppendSeq(slices.Collect(maps.Keys(r.policies)), maps.Keys(r.refused)) {
		s := VRFStatus{Imported: len(r.routes[vni]), MaxPrefixes: r.limits[vni].MaxPrefixes}
		if v := r.refused[vni]; v != nil {
			s.Filtered, s.Waiting, s.FilteredTotal, s.WaitingTotal = len(v.filtered), len(v.waiting), v.filteredTotal, v.waitingTotal
		}
		out[vni] = s
	}
	return out
}

// without leaves out the VRFs that refuse a prefix; why is the reason if none is left.
func without(refused map[intent.VNI]*refusals, vrfs []intent.VNI, p netip.Prefix) (left []intent.VNI, why Reason) {
	for _, vni := range vrfs {
		if r := refused[vni].of(p); r != "" {
			why = r
		} else {
			left = append(left, vni)
		}
	}
	if len(left) > 0 {
		why = ""
	}
	return left, why
}
