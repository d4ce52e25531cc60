package tables

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// While a driver does not return, as those that ask ovs-vswitchd when that is stopped, rows
// of the other tables come and go. What waits beside gates: a row of the same VRF whose
// packets would be lost if it came before what the driver is to write, or went before what
// the driver is to remove. See decision 21.

type stage = reconcile.Stage

// inVRF has a row of a VRF wait for those of the same VRF.
func inVRF[K, V any](t *Tables, of func(K, V) intent.VNI) func(stage, bool) func(K, V) bool {
	return func(late stage, _ bool) func(K, V) bool {
		concerned := t.concerned(late)
		return func(k K, v V) bool { return concerned(of(k, v)) }
	}
}

// untilWithdrawn has a row of a VRF wait until the announcements of it have gone that go.
func untilWithdrawn[K, V any](t *Tables, of func(K, V) intent.VNI) func(stage, bool) func(K, V) bool {
	return func(late stage, _ bool) func(K, V) bool {
		if late != stage(t.Announcements) {
			return func(K, V) bool { return false }
		}
		concerned := t.concerned(late)
		return func(k K, v V) bool { return concerned(of(k, v)) }
	}
}

// onItsOwn has no row wait: its gate says all.
func onItsOwn[K, V any](stage, bool) func(K, V) bool { return func(K, V) bool { return false } }

// behindAnnouncement has a withdrawal wait for nothing. But a route that is wanted, and kept
// out by its gate because what it needs is being written, stays as it is until that is done:
// the write of a row leaves no gap.
func (t *Tables) behindAnnouncement(late stage, goes bool) func(intent.RouteKey, intent.Announcement) bool {
	return func(k intent.RouteKey, a intent.Announcement) bool {
		if !goes || !t.Announcements.WantedLocked(k) {
			return false
		}
		switch late {
		case stage(t.Bridges):
			return t.Bridges.RunsLocked(a.Gateway.Bridge)
		case stage(t.KernelVRFs):
			return t.KernelVRFs.RunsLocked(k.VNI)
		case stage(t.KernelGateways):
			return t.KernelGateways.RunsLocked(a.Gateway)
		case stage(t.Steering):
			back, _ := sourceFlow(k.VNI, a.Gateway, k.Prefix, t.Steering.WantedLocked)
			return t.Steering.RunsLocked(back) || t.Steering.RunsLocked(intent.SteeringKey{Gateway: a.Gateway, Kind: intent.SteerToOVN})
		}
		return false
	}
}

// atGateway has a row of a gateway wait for those of its VRF, and for flows of its segment.
func atGateway[K, V any](t *Tables, of func(K) intent.GatewayKey) func(stage, bool) func(K, V) bool {
	return func(late stage, _ bool) func(K, V) bool {
		concerned, segments := t.concerned(late), map[intent.GatewayKey]bool{}
		if late == stage(t.Steering) {
			t.Steering.EachPendingLocked(func(s intent.SteeringKey, _ intent.Steering) { segments[s.Gateway.Segment()] = true })
			return func(k K, _ V) bool { return segments[of(k).Segment()] }
		}
		return func(k K, _ V) bool {
			g, ok := t.Gateways.LookupLocked(of(k))
			if !ok {
				g, ok = t.Gateways.ActualLocked(of(k))
			}
			return !ok || concerned(g.VNI)
		}
	}
}

// behindRoute has a local route wait for what brings its packets into OVN and back, and an
// imported one for those that are given back to OVN: while there are some, OVN sends here.
func (t *Tables) behindRoute(late stage, goes bool) func(intent.RouteKey, intent.Route) bool {
	concerned := t.concerned(late)
	return func(k intent.RouteKey, r intent.Route) bool {
		if r.Kind == intent.RouteRemote && !(goes && late == stage(t.LearnedRoutes)) {
			return false
		}
		return concerned(k.VNI)
	}
}

// behindVTEP has a VTEP wait for the routes to it alone.
func (t *Tables) behindVTEP(late stage, goes bool) func(netip.Addr, intent.VTEP) bool {
	return func(netip.Addr, intent.VTEP) bool { return goes && late == stage(t.Routes) }
}

// behindLearned has a route be given back to OVN after what its packets need.
func (t *Tables) behindLearned(late stage, goes bool) func(intent.LearnedKey, intent.LearnedRoute) bool {
	concerned := t.concerned(late)
	return func(k intent.LearnedKey, _ intent.LearnedRoute) bool {
		vni, ok := t.src.LearnedBy(k.Table)
		return !goes && ok && concerned(vni)
	}
}

// concerned returns what tells whether rows of a VRF are among those of a table that wait.
func (t *Tables) concerned(late stage) func(intent.VNI) bool {
	known := map[intent.VNI]bool{}
	return func(vni intent.VNI) bool {
		yes, ok := known[vni]
		if !ok {
			yes = vni == 0 || t.pendingOf(vni, late)
			known[vni] = yes
		}
		return yes
	}
}

func (t *Tables) pendingOf(vni intent.VNI, late stage) bool {
	of := func(g intent.GatewayKey) bool { return t.ofVRF(g, vni) }
	switch late {
	case stage(t.Bridges):
		return anyPending(t.Bridges, func(b intent.BridgeKey, _ intent.Bridge) bool { return t.onBridge(b, vni) })
	case stage(t.KernelVRFs):
		return anyPending(t.KernelVRFs, func(k intent.VNI, _ intent.KernelVRF) bool { return k == vni })
	case stage(t.KernelGateways):
		return anyPending(t.KernelGateways, func(k intent.GatewayKey, g intent.KernelGateway) bool { return g.VNI == vni || of(k) })
	case stage(t.KernelRoutes):
		return anyPending(t.KernelRoutes, func(k intent.RouteKey, _ intent.Route) bool { return k.VNI == vni })
	case stage(t.Steering):
		return anyPending(t.Steering, func(k intent.SteeringKey, _ intent.Steering) bool { return of(k.Gateway) })
	case stage(t.Policies):
		return anyPending(t.Policies, func(k intent.VNI, _ intent.VRFPolicy) bool { return k == vni })
	case stage(t.Announcements):
		return anyPending(t.Announcements, func(k intent.RouteKey, _ intent.Announcement) bool { return k.VNI == vni })
	case stage(t.LearnedRoutes):
		return anyPending(t.LearnedRoutes, func(k intent.LearnedKey, _ intent.LearnedRoute) bool {
			learner, ok := t.src.LearnedBy(k.Table)
			return !ok || learner == vni
		})
	}
	return true
}

// ofVRF tells whether a gateway is of a VRF, was, or may be.
func (t *Tables) ofVRF(k intent.GatewayKey, vni intent.VNI) bool {
	g, wanted := t.Gateways.LookupLocked(k)
	there, of := false, wanted && g.VNI == vni
	t.Gateways.MayBeLocked(k, func(g intent.Gateway) bool {
		there, of = true, of || g.VNI == vni
		return of
	})
	return of || !wanted && !there
}

// onBridge tells whether a gateway of a VRF is on a bridge, or is to be.
func (t *Tables) onBridge(b intent.BridgeKey, vni intent.VNI) (yes bool) {
	t.Gateways.EachLocked(func(k intent.GatewayKey, g intent.Gateway) { yes = yes || k.Bridge == b && g.VNI == vni })
	t.Gateways.EachUnwantedLocked(func(k intent.GatewayKey, g intent.Gateway) { yes = yes || k.Bridge == b && g.VNI == vni })
	return yes
}

func anyPending[K, V comparable](t *reconcile.Table[K, V], match func(K, V) bool) (found bool) {
	t.EachPendingLocked(func(k K, v V) { found = found || match(k, v) })
	return found
}
