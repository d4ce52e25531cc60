package nexthop

import (
	"maps"
	"net/netip"
	"time"
)

// ReturnTime is how long the routes of the underlay have to come back one after the other,
// after a node was cut off: BGP needs some seconds for a session on a link that is back.
const ReturnTime = 10 * time.Second

// Tracker remembers what was decided. Its zero value has lost nothing.
type Tracker struct {
	lost map[netip.Addr]string
	// cutOff: there was no route to anything. returned is since when there is one.
	cutOff   bool
	returned time.Time
}

// Seen is what the kernel does with packets.
type Seen struct {
	// Refused has all VTEPs, each with why packets to it are dropped; "" for the usual case.
	Refused map[netip.Addr]string
	// Neighbors tells how many BGP neighbours have an address, and whether there is a route to
	// one of them. It is asked for only if all VTEPs are refused, or none is known.
	Neighbors func() (known int, reachable bool)
}

// Result is what follows.
type Result struct {
	// Lost are the VTEPs that no route may lead to, each with the reason.
	Lost map[netip.Addr]string
	// CutOff: there is no route to anything, and Lost is what it was. It stays when BGP forgets
	// the VTEPs meanwhile.
	CutOff bool
	// Again is when to decide again though nothing changes; zero: never.
	Again time.Time
}

// Decide takes what is seen now.
func (t *Tracker) Decide(s Seen, now time.Time) Result {
	refused := maps.Clone(s.Refused)
	maps.DeleteFunc(refused, func(_ netip.Addr, why string) bool { return why == "" })
	some := len(refused) < len(s.Refused)
	if !some && s.cutOff(t.cutOff) {
		t.cutOff, t.returned = true, time.Time{}
		return Result{Lost: t.keep(refused), CutOff: true}
	}
	var again time.Time
	if t.cutOff {
		if t.returned.IsZero() {
			t.returned = now
		}
		again = t.returned.Add(ReturnTime)
		if len(refused) == 0 || !now.Before(again) {
			t.cutOff, again = false, time.Time{}
		} else {
			refused = t.keep(refused)
		}
	}
	t.lost = refused
	return Result{Lost: maps.Clone(refused), Again: again}
}

// cutOff tells whether there is no route to a neighbour either. A node that knows neither VTEPs
// nor neighbours has nothing to be cut off from, unless it has forgotten them since it was.
func (s Seen) cutOff(before bool) bool {
	known, reachable := s.Neighbors()
	return !reachable && (len(s.Refused) > 0 || known > 0 || before)
}

// keep leaves those that were lost before.
func (t *Tracker) keep(refused map[netip.Addr]string) map[netip.Addr]string {
	maps.DeleteFunc(refused, func(a netip.Addr, _ string) bool { _, before := t.lost[a]; return !before })
	return refused
}
