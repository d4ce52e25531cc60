package tables

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// FlowIdle is how long the programs know a flow without a packet at most: one of TCP
// that is open (RFC 5382).
const FlowIdle = 7440 * time.Second

// mostLingering is how many rows of a table stay for flows at most, so that those that are
// wanted have room.
const mostLingering = 4096

// lingerMemory is how long after its end it is known that a row lingered. It is more than the
// tables go without a pass.
const lingerMemory = 10 * time.Minute

// linger is until when rows stay that nobody asks for any more, since flows that are known may
// need them. What was never told to have been left is left when it is first seen to be: after
// a start, what the last process found no time to remove. Guarded by the pipeline.
type linger[K comparable] struct {
	now   func() time.Time
	most  int
	until map[K]time.Time
}

func newLinger[K comparable]() linger[K] {
	return linger[K]{now: time.Now, most: mostLingering, until: map[K]time.Time{}}
}

// leave has a row stay from now on; with ended its flows have ended, and only others may
// need it.
func (l *linger[K]) leave(k K, ended bool) {
	now := l.now()
	switch {
	case !ended:
		l.until[k] = now.Add(FlowIdle)
	case l.until[k].Before(now):
		l.until[k] = now
	}
}

// keeps tells whether a row stays.
func (l *linger[K]) keeps(k K) bool {
	now := l.now()
	until, seen := l.until[k]
	if seen && now.Before(until.Add(lingerMemory)) {
		return now.Before(until)
	}
	if !seen && len(l.until) >= l.most {
		return false
	}
	l.until[k] = now.Add(FlowIdle)
	return true
}

// forget drops what is over, and of more rows than may stay those that would go first.
func (l *linger[K]) forget() {
	now := l.now()
	maps.DeleteFunc(l.until, func(_ K, until time.Time) bool { return !now.Before(until.Add(lingerMemory)) })
	if len(l.until) <= l.most {
		return
	}
	type end struct {
		key K
		at  time.Time
	}
	ends := make([]end, 0, len(l.until))
	for k, at := range l.until {
		ends = append(ends, end{k, at})
	}
	slices.SortFunc(ends, func(a, b end) int { return a.at.Compare(b.at) })
	for _, e := range ends[:len(ends)-l.most] {
		delete(l.until, e.key)
	}
}

// endpoint is where the programs send what they balance in a VRF, and where answers are from.
type endpoint struct {
	vni      intent.VNI
	protocol intent.Protocol
	addr     netip.Addr
	port     uint16
}

func (e endpoint) host() intent.RouteKey { return intent.NewHostKey(e.vni, e.addr) }

// ways are what is known of the rows BackendRoutes and SteerAnswer beside the tables: the
// ways to and from backends whose networks are not exposed. Guarded by the pipeline.
type ways struct {
	// vips counts the VIPs of a VRF.
	vips map[intent.VNI]int
	// to and from are until when ways stay that no VIP leads to any more.
	to   linger[intent.RouteKey]
	from linger[endpoint]
}

func newWays() *ways {
	return &ways{vips: map[intent.VNI]int{}, to: newLinger[intent.RouteKey](), from: newLinger[endpoint]()}
}

// SetVIPs replaces the wanted VIPs. Call it inside an update of the pipeline.
func (t *Tables) SetVIPs(all map[intent.VIPKey]intent.VIP) {
	var gone []intent.VIPKey
	t.VIPs.EachLocked(func(k intent.VIPKey, _ intent.VIP) {
		if _, stays := all[k]; !stays {
			gone = append(gone, k)
		}
	})
	t.followVIPs(all, gone)
	t.VIPs.Set(all)
}

// UpdateVIPs changes the wanted VIPs. Call it inside an update of the pipeline.
func (t *Tables) UpdateVIPs(set map[intent.VIPKey]intent.VIP, gone []intent.VIPKey) {
	t.followVIPs(set, gone)
	t.VIPs.Update(set, gone)
}

// followVIPs is told of a change of the wanted VIPs before it is made.
func (t *Tables) followVIPs(set map[intent.VIPKey]intent.VIP, gone []intent.VIPKey) {
	left := false
	for _, k := range gone {
		if _, again := set[k]; again {
			continue
		}
		if old, had := t.VIPs.LookupLocked(k); had {
			left = t.leave(old, intent.VIP{Key: k, Flush: old.Flush}) || left
			if t.ways.vips[k.VNI]--; t.ways.vips[k.VNI] == 0 {
				delete(t.ways.vips, k.VNI)
			}
		}
	}
	for k, v := range set {
		old, had := t.VIPs.LookupLocked(k)
		if had && old.Backends != v.Backends {
			left = t.leave(old, v) || left
		}
		if !had {
			t.ways.vips[k.VNI]++
		}
	}
	if left {
		t.ways.to.forget()
		t.ways.from.forget()
	}
}

// leave takes the backends that a VIP has no more, as far as they have ways of their own:
// flows to them go on, unless the VIP says that they end. It tells whether there are any.
func (t *Tables) leave(old, v intent.VIP) (left bool) {
	rest := v.Backends.All()
	for _, b := range old.Backends.All() {
		for len(rest) > 0 && cmp.Or(rest[0].Addr.Compare(b.Addr), cmp.Compare(rest[0].Port, b.Port)) < 0 {
			rest = rest[1:]
		}
		if len(rest) > 0 && rest[0].Addr == b.Addr && rest[0].Port == b.Port {
			continue
		}
		e := endpoint{v.Key.VNI, v.Key.Protocol, b.Addr, b.Port}
		if _, hidden := t.BackendRoutes.ActualLocked(e.host()); hidden {
			t.ways.to.leave(e.host(), v.Flush)
			t.ways.from.leave(e, v.Flush)
			left = true
		}
	}
	return left
}

// lingerTo has the way to a backend stay for the flows that are known.
func (t *Tables) lingerTo(k intent.RouteKey, r intent.BackendRoute) bool {
	return r.Key == k && t.balances(k.VNI, r.Gateway) && t.ways.to.keeps(k)
}

// lingerFrom has the flow stay that brings a backend's answers.
func (t *Tables) lingerFrom(k intent.SteeringKey, s intent.Steering) bool {
	g, ok := t.Gateways.LookupLocked(k.Gateway)
	return ok && s.Key == k && k.Kind == intent.SteerAnswer && t.balances(g.VNI, k.Gateway) &&
		t.ways.from.keeps(endpoint{g.VNI, k.Protocol, k.Prefix.Addr(), k.Port})
}

// balances tells whether the programs look for flows in what passes a gateway port: its VRF
// is theirs, and has VIPs, be they OVN's.
func (t *Tables) balances(vni intent.VNI, gateway intent.GatewayKey) bool {
	g, ok := t.Gateways.LookupLocked(gateway)
	if !ok || g.VNI != vni || t.ways.vips[vni] == 0 || !t.VRFs.WantedLocked(vni) {
		return false
	}
	v, there := t.VRFs.ActualLocked(vni)
	return !t.VRFs.KnownLocked() || there && v.VNI == vni && v.Path == intent.PathEBPF
}
