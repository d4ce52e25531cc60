package tables

import (
	"net/netip"
	"slices"

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
		if late != stage(Of(t, intent.Announcements)) {
			return func(K, V) bool { return false }
		}
		concerned := t.concerned(late)
		return func(k K, v V) bool { return concerned(of(k, v)) }
	}
}

// onItsOwn has no row wait: its gate says all.
func onItsOwn[K, V any](stage, bool) func(K, V) bool { return func(K, V) bool { return false } }

// behindAnnouncement has a withdrawal wait for nothing. But a route that is wanted stays whose
// gate is closed by nothing but rows that are being rewritten: the write of a row leaves no gap.
func (t *Tables) behindAnnouncement(_ stage, goes bool) func(intent.RouteKey, intent.Announcement) bool {
	return func(k intent.RouteKey, _ intent.Announcement) bool {
		a, wanted := Of(t, intent.Announcements).LookupLocked(k)
		return goes && wanted && gates{t, true}.announcement(k, a) == nil
	}
}

// atGateway has a row of a gateway wait for those of its VRF, and for flows of its segment. A
// row of a segment has no VRF: it denies an address, whatever else is there.
func atGateway[K, V any](t *Tables, of func(K) intent.GatewayKey) func(stage, bool) func(K, V) bool {
	return func(late stage, _ bool) func(K, V) bool {
		if late == stage(Of(t, intent.SteeringFlows)) {
			segments := map[intent.GatewayKey]bool{}
			Of(t, intent.SteeringFlows).EachPendingLocked(func(s intent.SteeringKey, _ intent.Steering) { segments[s.Gateway.Segment()] = true })
			return func(k K, _ V) bool { return segments[of(k).Segment()] }
		}
		concerned := t.concerned(late)
		return func(k K, _ V) bool {
			if of(k).IsSegment() {
				return false
			}
			vnis := t.vnisOf(of(k))
			return len(vnis) == 0 || slices.ContainsFunc(vnis, concerned)
		}
	}
}

// behindRoute has a local route wait for what brings its packets into OVN and back, and an
// imported one for those that are given back to OVN: while there are some, OVN sends here.
func (t *Tables) behindRoute(late stage, goes bool) func(intent.RouteKey, intent.Route) bool {
	concerned := t.concerned(late)
	return func(k intent.RouteKey, r intent.Route) bool {
		if r.Kind == intent.RouteRemote && !(goes && late == stage(Of(t, intent.LearnedRoutes))) {
			return false
		}
		return concerned(k.VNI)
	}
}

// behindVTEP has a VTEP wait for the routes to it alone.
func (t *Tables) behindVTEP(late stage, goes bool) func(netip.Addr, intent.VTEP) bool {
	return func(netip.Addr, intent.VTEP) bool { return goes && late == stage(Of(t, intent.Routes)) }
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
	c := t.concern(late)
	return func(vni intent.VNI) bool { return c.all || vni == 0 || c.vnis[vni] }
}

// concern is the VRFs that rows are of. all: that is not known of some row.
type concern struct {
	vnis map[intent.VNI]bool
	all  bool
}

// concern is that of the rows of a table that wait.
func (t *Tables) concern(late stage) concern {
	c := concern{vnis: map[intent.VNI]bool{}}
	of := func(vnis ...intent.VNI) {
		c.all = c.all || len(vnis) == 0
		for _, vni := range vnis {
			c.vnis[vni] = true
		}
	}
	switch late {
	case stage(Of(t, intent.Bridges)):
		t.onBridges(of)
	case stage(Of(t, intent.KernelVRFs)):
		Of(t, intent.KernelVRFs).EachPendingLocked(func(k intent.VNI, _ intent.KernelVRF) { of(k) })
	case stage(Of(t, intent.KernelGateways)):
		Of(t, intent.KernelGateways).EachPendingLocked(func(k intent.GatewayKey, g intent.KernelGateway) { of(t.vniOr(g.VNI, k)...) })
	case stage(Of(t, intent.KernelRoutes)):
		Of(t, intent.KernelRoutes).EachPendingLocked(func(k intent.RouteKey, _ intent.Route) { of(k.VNI) })
	case stage(Of(t, intent.VRFs)):
		Of(t, intent.VRFs).EachPendingLocked(func(k intent.VNI, _ intent.VRF) { of(k) })
	case stage(Of(t, intent.Gateways)):
		Of(t, intent.Gateways).EachPendingLocked(func(k intent.GatewayKey, g intent.Gateway) { of(t.vniOr(g.VNI, k)...) })
	case stage(Of(t, intent.ServedNextHops)):
		Of(t, intent.ServedNextHops).EachPendingLocked(func(k intent.ServedKey, _ intent.Served) {
			if !k.Gateway.IsSegment() {
				of(t.vnisOf(k.Gateway)...)
			}
		})
	case stage(Of(t, intent.VTEPs)): // of none
	case stage(Of(t, intent.BackendRoutes)):
		Of(t, intent.BackendRoutes).EachPendingLocked(func(k intent.RouteKey, _ intent.BackendRoute) { of(k.VNI) })
	case stage(Of(t, intent.VIPs)):
		Of(t, intent.VIPs).EachPendingLocked(func(k intent.VIPKey, _ intent.VIP) { of(k.VNI) })
	case stage(Of(t, intent.Routes)):
		Of(t, intent.Routes).EachPendingLocked(func(k intent.RouteKey, _ intent.Route) { of(k.VNI) })
	case stage(Of(t, intent.UnderlayDevices)):
		of(intent.DefaultVRF)
	case stage(Of(t, intent.SteeringFlows)):
		Of(t, intent.SteeringFlows).EachPendingLocked(func(k intent.SteeringKey, _ intent.Steering) { of(t.vnisOf(k.Gateway)...) })
	case stage(Of(t, intent.Policies)):
		Of(t, intent.Policies).EachPendingLocked(func(k intent.VNI, _ intent.VRFPolicy) { of(k) })
	case stage(Of(t, intent.Announcements)):
		Of(t, intent.Announcements).EachPendingLocked(func(k intent.RouteKey, _ intent.Announcement) { of(k.VNI) })
	case stage(Of(t, intent.LearnedRoutes)):
		Of(t, intent.LearnedRoutes).EachPendingLocked(func(k intent.LearnedKey, _ intent.LearnedRoute) {
			if learner, ok := t.src.LearnedBy(k.Table); ok {
				of(learner)
			} else {
				of()
			}
		})
	default:
		c.all = true
	}
	return c
}

// vnisOf are the VRFs that a gateway is of, was, or may be. Empty: that is not known.
func (t *Tables) vnisOf(k intent.GatewayKey) (vnis []intent.VNI) {
	if g, wanted := Of(t, intent.Gateways).LookupLocked(k); wanted {
		vnis = append(vnis, g.VNI)
	}
	Of(t, intent.Gateways).MayBeLocked(k, func(g intent.Gateway) bool {
		if g.VNI != 0 {
			vnis = append(vnis, g.VNI)
		}
		return false
	})
	return vnis
}

// vniOr is the VRF of a row of a gateway, or what is known of the gateway where the row, as it
// was found, tells none.
func (t *Tables) vniOr(vni intent.VNI, k intent.GatewayKey) []intent.VNI {
	if vni != 0 {
		return []intent.VNI{vni}
	}
	return t.vnisOf(k)
}

// onBridges tells of the VRFs of the gateways on the bridges that wait, or that are to be.
func (t *Tables) onBridges(of func(...intent.VNI)) {
	bridges := map[intent.BridgeKey]bool{}
	Of(t, intent.Bridges).EachPendingLocked(func(b intent.BridgeKey, _ intent.Bridge) { bridges[b] = true })
	each := func(k intent.GatewayKey, g intent.Gateway) {
		if bridges[k.Bridge] {
			of(t.vniOr(g.VNI, k)...)
		}
	}
	Of(t, intent.Gateways).EachLocked(each)
	Of(t, intent.Gateways).EachUnwantedLocked(each)
}
