package tables

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// Drivers are the actual sides: one for each table of pkg/intent.
type Drivers struct {
	Bridges       reconcile.Driver[intent.BridgeKey, intent.Bridge]
	VRFs          reconcile.Driver[intent.VNI, intent.VRF]
	Gateways      reconcile.Driver[intent.GatewayKey, intent.Gateway]
	Served        reconcile.Driver[intent.ServedKey, intent.Served]
	VTEPs         reconcile.Driver[netip.Addr, intent.VTEP]
	Routes        reconcile.Driver[intent.RouteKey, intent.Route]
	Steering      reconcile.Driver[intent.SteeringKey, intent.Steering]
	Policies      reconcile.Driver[intent.VNI, intent.VRFPolicy]
	Announcements reconcile.Driver[intent.RouteKey, intent.Announcement]
}

// Sources tell whether what a table is computed from is complete. They are
// called with the pipeline's lock held.
type Sources struct {
	OVN func() bool // Southbound and local databases
	BGP func() bool // every neighbour has sent its End-of-RIB, or has run out of time
	// Lingers: the next hops of a route that BGP no longer shows may come back.
	Lingers func(hops intent.NextHopSet, known func(netip.Addr) bool) bool
}

// Tables are the wanted and actual tables of a node, in order.
type Tables struct {
	Pipeline      *reconcile.Pipeline
	Bridges       *reconcile.Table[intent.BridgeKey, intent.Bridge]
	VRFs          *reconcile.Table[intent.VNI, intent.VRF]
	Gateways      *reconcile.Table[intent.GatewayKey, intent.Gateway]
	Served        *reconcile.Table[intent.ServedKey, intent.Served]
	VTEPs         *reconcile.Table[netip.Addr, intent.VTEP]
	Routes        *reconcile.Table[intent.RouteKey, intent.Route]
	Steering      *reconcile.Table[intent.SteeringKey, intent.Steering]
	Policies      *reconcile.Table[intent.VNI, intent.VRFPolicy]
	Announcements *reconcile.Table[intent.RouteKey, intent.Announcement]
}

// New makes the tables, empty. It does no I/O. Failures of rows are reported to
// reg. A dry pipeline only compares.
func New(d Drivers, src Sources, reg *status.Registry, log *slog.Logger, dry bool) *Tables {
	t := &Tables{}
	t.Bridges = fromOVN("bridges", "bridge", d.Bridges, src, reg, t.bridgesChanged)
	t.VRFs = fromOVN("vrfs", "vrf", d.VRFs, src, reg, t.vrfsChanged)
	t.Gateways = fromOVN("gateways", "gateway", d.Gateways, src, reg, t.gatewaysChanged)
	t.Served = fromOVN("served", "next-hop", d.Served, src, reg, nil)
	t.VTEPs = reconcile.NewTable("vteps", d.VTEPs, reconcile.TableOptions[netip.Addr, intent.VTEP]{
		Hold:    func(netip.Addr, intent.VTEP) bool { return !src.BGP() || src.Lingers("", nil) },
		Observe: observe[netip.Addr](reg.Reporter("vteps"), "vtep", nil),
	})
	t.Routes = reconcile.NewTable("routes", d.Routes, reconcile.TableOptions[intent.RouteKey, intent.Route]{
		Hold:    t.holdRoute(src),
		Observe: observe(reg.Reporter("routes"), "route", t.routesChanged),
	})
	t.Steering = fromOVN("steering", "flow", d.Steering, src, reg, t.steeringChanged)
	t.Policies = fromOVN("policies", "policy", d.Policies, src, reg, nil)
	t.Announcements = reconcile.NewTable("announcements", d.Announcements, reconcile.TableOptions[intent.RouteKey, intent.Announcement]{
		Hold:    holdUnless[intent.RouteKey, intent.Announcement](src.OVN),
		Gate:    t.announceGate,
		Observe: observe[intent.RouteKey](reg.Reporter("announcements"), "announcement", nil),
	})
	t.Pipeline = reconcile.NewPipeline(reconcile.PipelineOptions{Log: log, Dry: dry},
		t.Bridges, t.VRFs, t.Gateways, t.Served, t.VTEPs, t.Routes, t.Steering, t.Policies, t.Announcements)
	return t
}

// fromOVN is a table that is computed from OVN alone. kind is the word for one
// of its rows; changed may be nil.
func fromOVN[K, V comparable](name, kind string, d reconcile.Driver[K, V], src Sources, reg *status.Registry, changed func([]reconcile.Event[K])) *reconcile.Table[K, V] {
	return reconcile.NewTable(name, d, reconcile.TableOptions[K, V]{
		Hold: holdUnless[K, V](src.OVN), Observe: observe(reg.Reporter(name), kind, changed),
	})
}

// announceGate lets a route be announced once packets for it would arrive: the
// whole way from the fabric into OVN and back is programmed.
func (t *Tables) announceGate(k intent.RouteKey, a intent.Announcement) error {
	toOVN := intent.SteeringKey{Gateway: a.Gateway, Kind: intent.SteerToOVN}
	switch {
	case !t.Bridges.ProgrammedLocked(a.Gateway.Bridge):
		return fmt.Errorf("%w for the veth pair of bridge %s", reconcile.ErrNotReady, a.Gateway.Bridge)
	case !t.VRFs.ProgrammedLocked(k.VNI):
		return fmt.Errorf("%w for VRF %s", reconcile.ErrNotReady, k.VNI)
	case !t.Gateways.ProgrammedLocked(a.Gateway):
		return fmt.Errorf("%w for gateway %s", reconcile.ErrNotReady, a.Gateway)
	case !t.Steering.ProgrammedLocked(toOVN):
		return fmt.Errorf("%w for flow %s", reconcile.ErrNotReady, toOVN)
	case !t.Routes.ProgrammedLocked(k):
		return fmt.Errorf("%w for route %s", reconcile.ErrNotReady, k)
	}
	return nil
}

// holdRoute keeps a local route until OVN is in sync, and an imported one until
// BGP is; but the imports of a VRF that OVN took away go with it.
func (t *Tables) holdRoute(src Sources) func(intent.RouteKey, intent.Route) bool {
	return func(k intent.RouteKey, r intent.Route) bool {
		if r.Kind != intent.RouteRemote || !t.VRFs.WantedLocked(k.VNI) {
			return !src.OVN()
		}
		return !src.BGP() || src.Lingers(r.NextHops, t.VTEPs.WantedLocked)
	}
}

func holdUnless[K, V comparable](inSync func() bool) func(K, V) bool {
	return func(K, V) bool { return !inSync() }
}

// observe reports failures as objects of their own and passes the keys on.
func observe[K comparable](rep *status.Reporter, kind string, changed func([]reconcile.Event[K])) func([]reconcile.Event[K]) {
	return func(events []reconcile.Event[K]) {
		for _, e := range events {
			if e.Err == nil || errors.Is(e.Err, reconcile.ErrNotReady) {
				rep.Delete(kind, fmt.Sprint(e.Key))
				continue
			}
			rep.Set(status.Object{Kind: kind, Key: fmt.Sprint(e.Key), State: status.Error, Reason: ReasonOf(e.Err), Error: e.Err.Error()})
		}
		if changed != nil {
			changed(events)
		}
	}
}
