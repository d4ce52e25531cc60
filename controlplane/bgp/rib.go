package bgp

import (
	"net/netip"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

type set[K comparable] map[K]struct{}

// rib is what the neighbours sent and the import tables computed from it. It
// does no I/O and reads no clock; its caller locks.
type rib struct {
	own    func(netip.Addr) bool
	linger time.Duration // of VTEPs
	ghosts ghosts
	// only4 and only6: this node has a VTEP of that family alone. A packet to
	// another one has no outer source: its next hop is not resolvable (RFC 4271
	// section 9.1.2.1).
	only4, only6 bool

	paths    map[pathKey]*path
	byPrefix map[netip.Prefix]set[*path]
	byTarget map[intent.RouteTarget]set[*path]
	// autoTargets are the members of byTarget that an automatic import of the
	// VNI accepts.
	autoTargets map[intent.VNI]set[intent.RouteTarget]

	policies  map[intent.VNI]intent.VRFPolicy
	importers map[intent.RouteTarget]set[intent.VNI]
	routes    map[intent.VNI]map[netip.Prefix]intent.NextHopSet
	vteps     map[netip.Addr]*vtep
	// applied counts what was received.
	applied uint64
	// limits are the configuration's, by VRF; refused is what came of them.
	limits  map[intent.VNI]VRFImport
	refused map[intent.VNI]*refusals
	// lingering are the VTEPs without a route.
	lingering set[netip.Addr]
	// away are the neighbours whose session is lost.
	away set[netip.Addr]
	// lost are the VTEPs that the node has no route to.
	lost set[netip.Addr]
	// siblings are the VTEPs of AddSiblings.
	siblings set[netip.Addr]

	dirty      set[intent.RouteKey]
	dirtyVTEPs set[netip.Addr]
	neighbors  map[netip.Addr]*pathCounts
}

type vtep struct {
	refs int
	gone time.Time
	haunt
}

// pathCounts are one neighbour's paths by what became of them.
type pathCounts struct {
	received int
	rejected map[Reason]int
	// total counts every rejection since the start.
	total map[Reason]uint64
}

func newRIB(own func(netip.Addr) bool, linger, peerLinger time.Duration) *rib {
	return &rib{
		own: own, linger: linger, ghosts: newGhosts(peerLinger),
		paths:       map[pathKey]*path{},
		byPrefix:    map[netip.Prefix]set[*path]{},
		byTarget:    map[intent.RouteTarget]set[*path]{},
		autoTargets: map[intent.VNI]set[intent.RouteTarget]{},
		policies:    map[intent.VNI]intent.VRFPolicy{},
		importers:   map[intent.RouteTarget]set[intent.VNI]{},
		routes:      map[intent.VNI]map[netip.Prefix]intent.NextHopSet{},
		vteps:       map[netip.Addr]*vtep{},
		refused:     map[intent.VNI]*refusals{},
		lingering:   set[netip.Addr]{},
		away:        set[netip.Addr]{},
		siblings:    set[netip.Addr]{},
		dirty:       set[intent.RouteKey]{},
		dirtyVTEPs:  set[netip.Addr]{},
		neighbors:   map[netip.Addr]*pathCounts{},
	}
}

// apply takes one received path, an update or a withdrawal.
func (r *rib) apply(p *path, now time.Time) {
	old := r.paths[p.key]
	counts := r.counts(p.key.neighbor)
	r.applied++
	if !p.withdrawn {
		p.reason = p.check(r.own)
		if p.reason == "" && r.unreachable(p.hop.VTEP) {
			p.reason = ReasonFamily
		}
		if p.reason != "" {
			counts.total[p.reason]++
			counts.rejected[p.reason]++
		}
		r.paths[p.key] = p
		counts.received++
		r.insert(p, now)
	} else {
		delete(r.paths, p.key)
	}
	// The new path is in before the old one goes, so that a VTEP with one route
	// is not lost when that route changes.
	if old != nil {
		counts.received--
		if old.reason != "" {
			counts.rejected[old.reason]--
		}
		r.remove(old, now)
		if p.withdrawn && old.reason == "" {
			r.depart(old, now)
		}
	}
}

func (r *rib) unreachable(vtep netip.Addr) bool {
	return r.only4 && !vtep.Is4() || r.only6 && vtep.Is4()
}

func (r *rib) counts(n netip.Addr) *pathCounts {
	c := r.neighbors[n]
	if c == nil {
		c = &pathCounts{rejected: map[Reason]int{}, total: map[Reason]uint64{}}
		r.neighbors[n] = c
	}
	return c
}

func (r *rib) insert(p *path, now time.Time) {
	if p.reason != "" {
		return
	}
	add(r.byPrefix, p.prefix, p)
	for _, rt := range p.targets {
		add(r.byTarget, rt, p)
		if vni, ok := autoVNI(rt); ok {
			add(r.autoTargets, vni, rt)
		}
	}
	v := r.vteps[p.hop.VTEP]
	if v == nil {
		v = &vtep{}
		r.vteps[p.hop.VTEP] = v
		r.dirtyVTEPs[p.hop.VTEP] = struct{}{}
	}
	if v.refs++; len(v.ghosts) > 0 && (v.refs == 1 || !v.back.IsZero()) {
		v.back = now
	}
	delete(r.lingering, p.hop.VTEP)
	if r.isLost(p) {
		r.counts(p.key.neighbor).total[ReasonUnreachable]++
	}
	r.touch(p)
}

func (r *rib) remove(p *path, now time.Time) {
	if p.reason != "" {
		return
	}
	drop(r.byPrefix, p.prefix, p)
	for _, rt := range p.targets {
		drop(r.byTarget, rt, p)
		if vni, ok := autoVNI(rt); ok && r.byTarget[rt] == nil {
			drop(r.autoTargets, vni, rt)
		}
	}
	v := r.vteps[p.hop.VTEP]
	if v.refs--; v.refs == 0 {
		v.gone = now
		r.lingering[p.hop.VTEP] = struct{}{}
	}
	r.touch(p)
}

// touch marks the prefix in every VRF that imports the path.
func (r *rib) touch(p *path) {
	for _, rt := range p.targets {
		for vni := range r.importers[rt] {
			r.dirty[intent.RouteKey{VNI: vni, Prefix: p.prefix}] = struct{}{}
		}
		if vni, ok := autoVNI(rt); ok && r.policies[vni].AutoImport {
			r.dirty[intent.RouteKey{VNI: vni, Prefix: p.prefix}] = struct{}{}
		}
	}
}

// autoVNI is the VNI whose automatic import accepts the target.
func autoVNI(rt intent.RouteTarget) (intent.VNI, bool) {
	vni := intent.VNI(rt[4])<<24 | intent.VNI(rt[5])<<16 | intent.VNI(rt[6])<<8 | intent.VNI(rt[7])
	return vni, rt.MatchesAuto(vni)
}

// setPolicies replaces the policies and marks what the difference touches.
func (r *rib) setPolicies(policies map[intent.VNI]intent.VRFPolicy) {
	for vni, old := range r.policies {
		if next, ok := policies[vni]; !ok || next.Import != old.Import || next.AutoImport != old.AutoImport {
			for prefix := range r.routes[vni] {
				r.dirty[intent.RouteKey{VNI: vni, Prefix: prefix}] = struct{}{}
			}
			r.markRefused(vni)
			for _, rt := range old.Import.All() {
				drop(r.importers, rt, vni)
			}
		}
	}
	for vni, next := range policies {
		old, ok := r.policies[vni]
		if ok && next.Import == old.Import && next.AutoImport == old.AutoImport {
			continue
		}
		for _, rt := range next.Import.All() {
			add(r.importers, rt, vni)
			r.mark(vni, rt)
		}
		if next.AutoImport {
			for rt := range r.autoTargets[vni] {
				r.mark(vni, rt)
			}
		}
	}
	r.policies = policies
}

func (r *rib) mark(vni intent.VNI, rt intent.RouteTarget) {
	for p := range r.byTarget[rt] {
		r.dirty[intent.RouteKey{VNI: vni, Prefix: p.prefix}] = struct{}{}
	}
}

// imports tells whether the VRF takes the path.
func (r *rib) imports(policy intent.VRFPolicy, p *path) bool {
	for _, rt := range p.targets {
		if policy.AutoImport && rt.MatchesAuto(policy.VNI) {
			return true
		}
		if _, ok := r.importers[rt][policy.VNI]; ok {
			return true
		}
	}
	return false
}

// settle evaluates what is marked and returns the keys and VTEPs that changed.
func (r *rib) settle(now time.Time) (keys []intent.RouteKey, vteps []netip.Addr) {
	changed := set[intent.RouteKey]{}
	r.settleQuiet(now)
	r.evaluateDirty(changed, now)
	r.keepLost(now)
	r.evaluateDirty(changed, now)
	for k := range changed {
		keys = append(keys, k)
	}
	for a := range r.lingering {
		if v := r.vteps[a]; len(v.ghosts) == 0 && now.Sub(v.gone) >= r.linger {
			delete(r.vteps, a)
			delete(r.lingering, a)
			r.dirtyVTEPs[a] = struct{}{}
		}
	}
	for a := range r.dirtyVTEPs {
		vteps = append(vteps, a)
	}
	clear(r.dirtyVTEPs)
	return keys, vteps
}

// evaluateDirty goes on until nothing is marked: a row may mark the ghosts that
// it covers.
func (r *rib) evaluateDirty(changed set[intent.RouteKey], now time.Time) {
	for len(r.dirty) > 0 {
		for k := range r.dirty {
			delete(r.dirty, k)
			if r.evaluate(k, now) {
				changed[k] = struct{}{}
			}
		}
	}
	clear(r.ghosts.departed)
}

// evaluate computes one row anew and tells whether it changed.
func (r *rib) evaluate(k intent.RouteKey, now time.Time) bool {
	vrf := r.routes[k.VNI]
	before := vrf[k.Prefix]
	hops, live, why := r.compute(k, before != "", now)
	if hops != "" && before == "" && r.full(k.VNI) {
		hops, live, why = "", false, ReasonMaxPrefixes
	}
	r.refuse(k, why)
	defer r.nextWaiting(k.VNI)
	if before == hops {
		return false
	}
	if live {
		r.unmask(k)
	}
	if hops == "" {
		delete(vrf, k.Prefix)
		if len(vrf) == 0 {
			delete(r.routes, k.VNI)
		}
		return true
	}
	if vrf == nil {
		vrf = map[netip.Prefix]intent.NextHopSet{}
		r.routes[k.VNI] = vrf
	}
	vrf[k.Prefix] = hops
	return true
}

// compute is what a row should be: the best of the live paths, else its ghost. why
// tells that the VRF has paths and does not want the prefix.
func (r *rib) compute(k intent.RouteKey, present bool, now time.Time) (hops intent.NextHopSet, live bool, why Reason) {
	policy, ok := r.policies[k.VNI]
	if !ok {
		r.exorcise(k, now)
		return "", false, ""
	}
	var candidates []*path
	for p := range r.byPrefix[k.Prefix] {
		if r.imports(policy, p) {
			candidates = append(candidates, p)
		}
	}
	if len(candidates) > 0 && !r.limits[k.VNI].permits(k.Prefix) {
		r.exorcise(k, now)
		return "", false, ReasonFiltered
	}
	if hops = best(r.resolved(candidates)); hops != "" {
		r.exorcise(k, now)
		return hops, true, ""
	}
	return r.fallback(policy, k, present, now), false, ""
}

func add[K, V comparable](m map[K]set[V], k K, v V) {
	if m[k] == nil {
		m[k] = set[V]{}
	}
	m[k][v] = struct{}{}
}

func drop[K, V comparable](m map[K]set[V], k K, v V) {
	delete(m[k], v)
	if len(m[k]) == 0 {
		delete(m, k)
	}
}
