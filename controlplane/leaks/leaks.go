// Package leaks finds what may join two tenants by mistake, or hide one's routes
// behind another's: one VNI or one route target in the hands of two, one route
// distinguisher or one VTEP of two nodes.
//
// It compares what a node sees: its own VRFs, ports in OVN, routes in BGP. It is
// pure, it judges, and it takes nothing down: two tenants that are joined may be
// meant to be, and whoever means it can say so in the configuration.
package leaks

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// Use is somebody who uses a VNI with route targets.
type Use struct {
	// Where says who, for people: "port lsp-red-gw", "VTEP 192.0.2.7".
	Where          string
	VNI            intent.VNI
	Import, Export intent.RouteTargets
	// AutoImport: the automatic route target of the VNI, from any AS.
	AutoImport bool
}

// RD is a route distinguisher with the VTEPs whose routes have it.
type RD struct {
	RD    string
	VTEPs []netip.Addr
}

// VTEP is one that several nodes have, with a sentence about each.
type VTEP struct {
	Addr  netip.Addr
	Nodes []string
}

// mostObjects bounds what is reported of one kind: a neighbour may send anything.
const mostObjects = 64

// Check compares the uses. configured tells whether this node's configuration names
// a route target for a VRF: who wrote that meant it.
func Check(uses []Use, rds []RD, vteps []VTEP, configured func(intent.VNI, intent.RouteTarget) bool) []status.Object {
	return slices.Concat(vnis(uses), targets(uses, configured), distinguishers(rds), endpoints(vteps))
}

// Kinds of object.
const (
	kindVNI    = "vni"
	kindTarget = "route-target"
	kindRD     = "route-distinguisher"
	kindVTEP   = "vtep"
)

func warn(kind, key, why, text string) status.Object {
	return status.Object{Kind: kind, Key: key, State: status.Warning, Reason: why, Error: text}
}

// plain makes the automatic route targets of a VNI one, whichever AS they name.
func plain(vni intent.VNI, rt intent.RouteTarget) intent.RouteTarget {
	if rt.MatchesAuto(vni) {
		return intent.AutoRouteTarget(0, vni)
	}
	return rt
}

// all are the route targets of a use, as plain makes them.
func (u Use) all() []intent.RouteTarget {
	var out []intent.RouteTarget
	for _, rt := range slices.Concat(u.Import.All(), u.Export.All()) {
		out = append(out, plain(u.VNI, rt))
	}
	if u.AutoImport {
		out = append(out, intent.AutoRouteTarget(0, u.VNI))
	}
	return out
}

// vnis finds the VNIs whose users fall apart into groups without a route target in
// common. Users with a common one, directly or through others, are one tenant.
func vnis(uses []Use) []status.Object {
	byVNI := map[intent.VNI][]Use{}
	for _, u := range uses {
		byVNI[u.VNI] = append(byVNI[u.VNI], u)
	}
	var out []status.Object
	for _, vni := range slices.Sorted(maps.Keys(byVNI)) {
		groups := groupsOf(byVNI[vni])
		if len(groups) < 2 || len(out) == mostObjects {
			continue
		}
		var words []string
		for _, g := range groups[:min(3, len(groups))] {
			words = append(words, fmt.Sprintf("%s (%s)", orNone(g.Export), g.Where))
		}
		out = append(out, warn(kindVNI, vni.String(), reason.VNICollision, fmt.Sprintf(
			"users of the VNI have no route target in common, %d groups: %s", len(groups), strings.Join(words, ", "))))
	}
	return out
}

// groupsOf is one use of each group that is connected by route targets.
func groupsOf(uses []Use) []Use {
	slices.SortStableFunc(uses, func(a, b Use) int { return cmp.Compare(a.Where, b.Where) })
	group := map[intent.RouteTarget]int{} // to an index of first
	parent := []int{}
	root := func(i int) int {
		for parent[i] != i {
			i = parent[i]
		}
		return i
	}
	first := []Use{}
	for _, u := range uses {
		rts := u.all()
		if len(rts) == 0 {
			continue // without a route target nobody imports it
		}
		mine := len(parent)
		parent, first = append(parent, mine), append(first, u)
		for _, rt := range rts {
			if other, seen := group[rt]; seen {
				// The one that was there first stands for both.
				a, b := root(other), root(mine)
				parent[max(a, b)] = min(a, b)
			} else {
				group[rt] = mine
			}
		}
	}
	var out []Use
	for i, u := range first {
		if root(i) == i {
			out = append(out, u)
		}
	}
	return out
}

func orNone(rts intent.RouteTargets) string {
	if rts == "" {
		return "none"
	}
	return rts.String()
}

// holders are the users of a route target: by VNI, where one is.
type holders struct{ importers, exporters map[intent.VNI]string }

// targets finds the route targets by which one VNI imports another's routes, where
// the configuration of neither names it.
func targets(uses []Use, configured func(intent.VNI, intent.RouteTarget) bool) []status.Object {
	byTarget := map[intent.RouteTarget]*holders{}
	note := func(rt intent.RouteTarget, u Use, imports bool) {
		h := byTarget[rt]
		if h == nil {
			h = &holders{map[intent.VNI]string{}, map[intent.VNI]string{}}
			byTarget[rt] = h
		}
		into := h.exporters
		if imports {
			into = h.importers
		}
		if old, ok := into[u.VNI]; !ok || u.Where < old {
			into[u.VNI] = u.Where
		}
	}
	for _, u := range uses {
		for _, rt := range u.Import.All() {
			note(rt, u, true)
		}
		for _, rt := range u.Export.All() {
			note(rt, u, false)
		}
	}
	// An automatic import takes what others export, or import, under its number.
	auto := map[intent.VNI]string{}
	for _, u := range uses {
		if old, ok := auto[u.VNI]; u.AutoImport && (!ok || u.Where < old) {
			auto[u.VNI] = u.Where
		}
	}
	for rt, h := range byTarget {
		number := intent.VNI(rt[4])<<24 | intent.VNI(rt[5])<<16 | intent.VNI(rt[6])<<8 | intent.VNI(rt[7])
		if where, ok := auto[number]; ok && rt.MatchesAuto(number) {
			h.importers[number] = where
		}
	}
	var out []status.Object
	keys := slices.SortedFunc(maps.Keys(byTarget), func(a, b intent.RouteTarget) int { return slices.Compare(a[:], b[:]) })
	for _, rt := range keys {
		if text := byTarget[rt].joined(func(vni intent.VNI) bool { return configured(vni, rt) }); text != "" && len(out) < mostObjects {
			out = append(out, warn(kindTarget, rt.String(), reason.TargetShared, text))
		}
	}
	return out
}

// joined says which two VNIs a route target joins that nobody meant to; "" none.
func (h holders) joined(meant func(intent.VNI) bool) string {
	for _, a := range slices.Sorted(maps.Keys(h.importers)) {
		if meant(a) {
			continue
		}
		for _, other := range []struct {
			does string
			who  map[intent.VNI]string
		}{{"exported by", h.exporters}, {"also imported by", h.importers}} {
			for _, b := range slices.Sorted(maps.Keys(other.who)) {
				if a != b && !meant(b) {
					return fmt.Sprintf("VNI %d (%s) imports it, and it is %s VNI %d (%s)", a, h.importers[a], other.does, b, other.who[b])
				}
			}
		}
	}
	return ""
}

func distinguishers(rds []RD) []status.Object {
	var out []status.Object
	for _, r := range rds {
		if len(out) == mostObjects {
			break
		}
		var words []string
		for _, a := range r.VTEPs {
			words = append(words, a.String())
		}
		out = append(out, warn(kindRD, r.RD, reason.RDShared, fmt.Sprintf(
			"routes of %d nodes have it: VTEPs %s; a route reflector passes on one of them for each prefix", len(r.VTEPs), strings.Join(words, ", "))))
	}
	return out
}

func endpoints(vteps []VTEP) []status.Object {
	var out []status.Object
	for _, v := range vteps[:min(mostObjects, len(vteps))] {
		out = append(out, warn(kindVTEP, v.Addr.String(), reason.SameVTEP, fmt.Sprintf(
			"%d nodes announce this VTEP: %s. Packets for one reach another.", len(v.Nodes), strings.Join(v.Nodes[:min(3, len(v.Nodes))], ", and "))))
	}
	return out
}
