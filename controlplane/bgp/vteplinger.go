package bgp

import (
	"net/netip"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// The times of doc.go's "Lost peers".
const (
	// batchTime is how long ago a route may have gone and still belong to the
	// batch of its VTEP's last one.
	batchTime = 2 * time.Second
	// runGap and runLimit: withdrawals that follow each other this closely are one
	// batch for so long. A reflector takes seconds for tens of thousands.
	runGap   = 250 * time.Millisecond
	runLimit = time.Minute
	// settleTime is how long a withdrawal waits for the next one of its VTEP, and
	// settleLimit the longest that the first of many waits. After runMany in a row
	// the next may be runGap away: a busy reflector pauses.
	settleTime  = 25 * time.Millisecond
	settleLimit = 5 * time.Second
	runMany     = 16
	// ReturnTime is how long an originator that is back has for its next route.
	ReturnTime = 5 * time.Second
	// sweepTime is how often the ends of ghosts are looked for.
	sweepTime = 100 * time.Millisecond
)

// ghost is a row whose last path was withdrawn: it may have gone with the
// originator's session only, while its forwarding is intact.
type ghost struct {
	key   intent.RouteKey
	path  *path // the last one to go
	left  time.Time
	phase phase
	until time.Time // when stale
	// alone: no other route went in the same batch, so it was withdrawn rather than lost.
	alone bool
}

type phase uint8

const (
	// leaving: the row is still in the table, the withdrawal waits for company.
	leaving phase = iota
	// remembered: the row is out of the table; it comes back if the VTEP's last
	// route goes in the same batch.
	remembered
	// stale: the VTEP's last route went, and the row is kept for a while.
	stale
)

// ghosts are all of them, and what the present settling has to look at.
type ghosts struct {
	linger time.Duration // 0 or less: none
	rows   map[intent.VNI]map[netip.Prefix]*ghost
	inside map[intent.VNI]*inside
	// local are the rows that this node itself announces.
	local map[intent.VNI]set[netip.Prefix]
	// departed are the paths withdrawn since the last settling.
	departed map[netip.Prefix][]*path
	// lost are the VTEPs whose last route was withdrawn since then.
	lost set[netip.Addr]
	// settling are the VTEPs with leaving ghosts, haunted those with any.
	settling, haunted set[netip.Addr]
	swept             time.Time
}

func newGhosts(linger time.Duration) ghosts {
	return ghosts{
		linger: linger, rows: map[intent.VNI]map[netip.Prefix]*ghost{}, inside: map[intent.VNI]*inside{}, local: map[intent.VNI]set[netip.Prefix]{},
		departed: map[netip.Prefix][]*path{}, lost: set[netip.Addr]{}, settling: set[netip.Addr]{}, haunted: set[netip.Addr]{},
	}
}

// haunt is the part of a vtep about its withdrawals and ghosts.
type haunt struct {
	ghosts set[*ghost]
	// run is when the present run of withdrawals began, last its latest one.
	run, last time.Time
	count     int // in this run
	// route is the latest one withdrawn, other when a route before it was that is another one.
	route routeKey
	other time.Time
	// first is when the first of the leaving ghosts left, quiet when no more
	// withdrawals are waited for.
	first, quiet time.Time
	// back is when a VTEP that was lost had its latest new route.
	back time.Time
}

func (h *haunt) settled() time.Time {
	if limit := h.first.Add(settleLimit); limit.Before(h.quiet) {
		return limit
	}
	return h.quiet
}

func (h *haunt) patience() time.Duration {
	if h.count >= runMany {
		return runGap
	}
	return settleTime
}

// alone tells whether no other route was withdrawn in the batch of the latest one: copies of
// one route, by several reflectors, are one.
func (h *haunt) alone(now time.Time) bool { return now.Sub(h.other) > batchTime }

// batched tells whether a ghost belongs to the batch of a withdrawal now.
func (h *haunt) batched(g *ghost, now time.Time) bool {
	return now.Sub(g.left) <= batchTime || !g.left.Before(h.run) && now.Sub(h.last) <= batchTime
}

// depart notes the withdrawal of a path that was valid, imported or not: most
// routes of a lost node may be other tenants'. A node that is drained has said that
// its routes go; and what was kept over a graceful restart has had its time, when the
// neighbour has not come back, or when it was kept on as long-lived stale.
func (r *rib) depart(p *path, now time.Time) {
	_, away := r.away[p.key.neighbor]
	if r.ghosts.linger <= 0 || p.rank.shutdown || p.rank.longStale || p.rank.stale && away {
		return
	}
	v := r.vteps[p.hop.VTEP]
	if now.Sub(v.last) > runGap || now.Sub(v.run) > runLimit {
		v.run, v.count = now, 0
	}
	if id := p.key.route(); id != v.route {
		v.route, v.other = id, v.last
	}
	v.last = now
	v.count++
	// A wait that is over is not drawn out because nobody looked in time.
	if _, waiting := r.ghosts.settling[p.hop.VTEP]; waiting && now.Before(v.quiet) {
		v.quiet = now.Add(v.patience())
	}
	r.ghosts.departed[p.prefix] = append(r.ghosts.departed[p.prefix], p)
	if v.refs == 0 {
		r.ghosts.lost[p.hop.VTEP] = struct{}{}
	}
}

// fallback is what a row without a live path is: its ghost's next hop while that
// is leaving or stale. present tells whether the row is in the table now.
func (r *rib) fallback(policy intent.VRFPolicy, k intent.RouteKey, present bool, now time.Time) intent.NextHopSet {
	if present {
		for _, p := range slices.Backward(r.ghosts.departed[k.Prefix]) {
			if r.imports(policy, p) {
				r.exorcise(k, now)
				r.appear(k, p, now)
				break
			}
		}
	}
	g := r.ghosts.rows[k.VNI][k.Prefix]
	if g == nil || g.phase == remembered {
		return ""
	}
	if !r.imports(policy, g.path) || r.covered(g) {
		r.exorcise(k, now)
		return ""
	}
	if r.isLost(g.path) {
		return ""
	}
	return intent.NewNextHopSet(g.path.hop)
}

func (r *rib) appear(k intent.RouteKey, p *path, now time.Time) {
	g := &ghost{key: k, path: p, left: now}
	if r.ghosts.rows[k.VNI] == nil {
		r.ghosts.rows[k.VNI], r.ghosts.inside[k.VNI] = map[netip.Prefix]*ghost{}, &inside{}
	}
	r.ghosts.rows[k.VNI][k.Prefix] = g
	r.ghosts.inside[k.VNI].add(k.Prefix, r.ghosts.rows[k.VNI])
	a := p.hop.VTEP
	v := r.vteps[a]
	if v.ghosts == nil {
		v.ghosts = set[*ghost]{}
	}
	v.ghosts[g] = struct{}{}
	r.ghosts.haunted[a] = struct{}{}
	if _, ok := r.ghosts.settling[a]; !ok {
		r.ghosts.settling[a] = struct{}{}
		v.first, v.quiet = now, now.Add(v.patience())
	}
}

// exorcise forgets the ghost of a row, if there is one.
func (r *rib) exorcise(k intent.RouteKey, now time.Time) {
	g := r.ghosts.rows[k.VNI][k.Prefix]
	if g == nil {
		return
	}
	delete(r.ghosts.rows[k.VNI], k.Prefix)
	if len(r.ghosts.rows[k.VNI]) == 0 {
		delete(r.ghosts.rows, k.VNI)
		delete(r.ghosts.inside, k.VNI)
	}
	a := g.path.hop.VTEP
	v := r.vteps[a]
	delete(v.ghosts, g)
	if v.refs == 0 && g.phase == stale {
		v.gone = now // it had a route until now
	}
	if len(v.ghosts) == 0 {
		v.back = time.Time{}
		delete(r.ghosts.haunted, a)
		delete(r.ghosts.settling, a)
	}
}

// settleQuiet takes the leaving ghosts out of the table whose VTEP lost no more
// routes for a moment, and ends old ghosts.
func (r *rib) settleQuiet(now time.Time) {
	for a := range r.ghosts.settling {
		v := r.vteps[a]
		if now.Before(v.settled()) {
			continue
		}
		delete(r.ghosts.settling, a)
		for g := range v.ghosts {
			if g.phase == leaving {
				g.phase = remembered
				r.dirty[g.key] = struct{}{}
			}
		}
	}
	if since := now.Sub(r.ghosts.swept); since >= sweepTime || since < 0 {
		r.ghosts.swept = now
		r.sweep(now)
	}
}

// keepLost makes the last batch of each VTEP stale that has no route left.
func (r *rib) keepLost(now time.Time) {
	for a := range r.ghosts.lost {
		v := r.vteps[a]
		if v.refs > 0 {
			continue
		}
		v.back = time.Time{}
		delete(r.ghosts.settling, a)
		for g := range v.ghosts {
			if g.phase != stale && v.batched(g, now) {
				g.phase, g.until, g.alone = stale, now.Add(r.ghosts.linger), v.alone(now)
				r.dirty[g.key] = struct{}{}
			}
		}
	}
	clear(r.ghosts.lost)
}

// sweep ends the ghosts whose time is over.
func (r *rib) sweep(now time.Time) {
	for a := range r.ghosts.haunted {
		v := r.vteps[a]
		for g := range v.ghosts {
			if g.phase == leaving || g.phase == remembered && v.batched(g, now) || g.phase == stale && now.Before(g.end(v.back)) {
				continue
			}
			r.dirty[g.key] = struct{}{}
			r.exorcise(g.key, now)
		}
	}
}

// end is when a stale ghost goes.
func (g *ghost) end(back time.Time) time.Time {
	if b := back.Add(ReturnTime); !back.IsZero() && b.Before(g.until) {
		return b
	}
	return g.until
}

// covered tells whether the VRF has another way to a ghost's destinations that
// it would hide: a route that this node announces, or a live one to another
// VTEP. The default route leads everywhere: it counts only for a route that was
// withdrawn alone.
func (r *rib) covered(g *ghost) bool {
	vni, prefix := g.key.VNI, g.key.Prefix
	local, routes, rows := r.ghosts.local[vni], r.routes[vni], r.ghosts.rows[vni]
	if _, ok := local[prefix]; ok {
		return true
	}
	shortest := 1 - boolean(g.alone)
	for bits := prefix.Bits() - 1; bits >= shortest; bits-- {
		p := netip.PrefixFrom(prefix.Addr(), bits).Masked()
		if _, ok := local[p]; ok {
			return true
		}
		hops, ok := routes[p]
		if !ok {
			continue
		}
		if other := rows[p]; other != nil && other.phase != remembered {
			continue // a ghost itself
		}
		if slices.ContainsFunc(hops.All(), func(h intent.NextHop) bool { return h.VTEP != g.path.hop.VTEP }) {
			return true
		}
	}
	return false
}

// setLocal notes what this node itself announces, or no longer does.
func (r *rib) setLocal(k intent.RouteKey, announced bool) {
	if !announced {
		drop(r.ghosts.local, k.VNI, k.Prefix)
		return
	}
	add(r.ghosts.local, k.VNI, k.Prefix)
	if g := r.ghosts.rows[k.VNI][k.Prefix]; g != nil {
		r.dirty[k] = struct{}{}
	}
	r.unmask(k)
}

// nextSettle is when the first leaving ghosts leave the table.
func (r *rib) nextSettle() (at time.Time, ok bool) {
	for a := range r.ghosts.settling {
		if t := r.vteps[a].settled(); !ok || t.Before(at) {
			at, ok = t, true
		}
	}
	return at, ok
}

func (r *rib) staleRows() (n int) {
	for a := range r.ghosts.haunted {
		for g := range r.vteps[a].ghosts {
			n += boolean(g.phase == stale)
		}
	}
	return n
}
