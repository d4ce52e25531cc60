package tables

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// holdRoute keeps a local route until OVN is in sync and has said all of its VRF,
// and an imported one until BGP is; but the imports of a VRF that OVN took away
// go with it. Both are kept for a moment after a gateway port of the VRF has gone.
// Both are kept while a VRF that is to change its path has not done so.
func (t *Tables) holdRoute(p intent.Path) func(intent.RouteKey, intent.Route) bool {
	return func(k intent.RouteKey, r intent.Route) bool {
		if t.onOtherPath(k.VNI, p) {
			return true
		}
		if r.Kind != intent.RouteRemote || !Of(t, intent.VRFs).WantedLocked(k.VNI) {
			return !t.src.OVN() || t.src.Pending(k.VNI) || t.moves.vrf(k.VNI)
		}
		return !t.src.BGP() || t.src.Lingers(r.NextHops, Of(t, intent.VTEPs).WantedLocked)
	}
}

// holdVTEP keeps a VTEP as long as a route to it alone would be.
func (t *Tables) holdVTEP(a netip.Addr, _ intent.VTEP) bool {
	return !t.src.BGP() || t.src.Lingers(intent.NewNextHopSet(intent.NextHop{VTEP: a}), Of(t, intent.VTEPs).WantedLocked)
}

// Misses tells whether any of the routes that other maps have is not wanted here, and may come
// back: holdRoute would keep it.
func (t *Tables) Misses(others map[intent.RouteKey]intent.NextHopSet) bool {
	known := func(a netip.Addr) bool { _, ok := Of(t, intent.VTEPs).Wanted(a); return ok }
	for k, hops := range others {
		_, wanted := Of(t, intent.Routes).Wanted(k)
		_, vrf := Of(t, intent.VRFs).Wanted(k.VNI)
		if !wanted && vrf && t.src.Lingers(hops, known) {
			return true
		}
	}
	return false
}

// holdVIPs keeps a VRF's VIPs, and what leads to their backends, until OVN is in sync and has
// said all of the VRF: most of what they are made of is in the Northbound database. They are
// kept for a moment after a gateway port of the VRF has gone.
func (t *Tables) holdVIPs(vni intent.VNI) bool {
	return !t.src.OVN() || t.src.Pending(vni) || t.moves.vrf(vni)
}

// holdFlow keeps a flow until OVN is in sync; one that brings packets of a source
// here, also until all is said of the gateway port's VRF.
func (t *Tables) holdFlow(k intent.SteeringKey, _ intent.Steering) bool {
	if !t.src.OVN() || t.moves.gateway(k.Gateway) {
		return true
	}
	if k.Kind == intent.SteerRouted {
		return t.src.Pending(intent.DefaultVRF)
	}
	g, ok := Of(t, intent.Gateways).LookupLocked(k.Gateway)
	return ok && (k.Kind == intent.SteerSource || k.Kind == intent.SteerAnswer) && t.src.Pending(g.VNI)
}

// holdLearned keeps what a router has learned that OVN does not show until it is in
// sync; and of one that it shows until BGP is, and as long as the VRF's own route is
// kept for a VTEP that may come back.
func (t *Tables) holdLearned(k intent.LearnedKey, _ intent.LearnedRoute) bool {
	vni, ok := t.src.LearnedBy(k.Table)
	if !ok {
		return !t.src.OVN()
	}
	if !t.src.BGP() {
		return true
	}
	for _, routes := range []*reconcile.Table[intent.RouteKey, intent.Route]{Of(t, intent.Routes), Of(t, intent.KernelRoutes)} {
		if routes.MayBeLocked(intent.RouteKey{VNI: vni, Prefix: k.Prefix}, func(r intent.Route) bool {
			return r.Kind == intent.RouteRemote && t.src.Lingers(r.NextHops, Of(t, intent.VTEPs).WantedLocked)
		}) {
			return true
		}
	}
	return false
}

// Held tells why nothing is deleted now from a table. Empty: it is not held.
func (t *Tables) Held(stage reconcile.Stage) string {
	var why []string
	if s := stuck(t.Pipeline, stage); s != "" {
		why = append(why, s)
	}
	from := t.sourceOf(stage)
	if from&fromOVN != 0 && !t.src.OVN() {
		why = append(why, "the Southbound or the local database is not in sync")
	}
	if from&fromBGP != 0 && !t.src.BGP() {
		why = append(why, "not all BGP neighbours have sent their routes")
	}
	return strings.Join(why, "; ")
}

// stuck tells why nothing becomes of a table for now.
func stuck(p *reconcile.Pipeline, stage reconcile.Stage) string {
	if since := stage.Busy(); !since.IsZero() {
		return fmt.Sprintf("its driver has not returned for %s", time.Since(since).Round(time.Second))
	}
	if err := p.ListError(stage.Name()); err != nil {
		return "it cannot be read back: " + err.Error()
	}
	return ""
}

// Waiting counts the rows of all tables that wait for something. While it falls,
// Complete comes nearer.
func (t *Tables) Waiting() (n int) {
	for _, s := range t.Pipeline.Stages() {
		n += s.Waiting()
	}
	return n
}

// Complete tells whether every table has been read back and no announcement waits
// for its turn or its gate: what BGP is told now is all that there is to tell.
func (t *Tables) Complete() bool {
	for _, s := range t.Pipeline.Stages() {
		if !s.Known() {
			return false
		}
	}
	return Of(t, intent.Announcements).Settled()
}
