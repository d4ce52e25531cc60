package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// drivers are the actual sides: one for each table of pkg/intent.
type drivers struct {
	bridges       reconcile.Driver[intent.BridgeKey, intent.Bridge]
	vrfs          reconcile.Driver[intent.VNI, intent.VRF]
	gateways      reconcile.Driver[intent.GatewayKey, intent.Gateway]
	served        reconcile.Driver[intent.ServedKey, intent.Served]
	vteps         reconcile.Driver[netip.Addr, intent.VTEP]
	routes        reconcile.Driver[intent.RouteKey, intent.Route]
	steering      reconcile.Driver[intent.SteeringKey, intent.Steering]
	policies      reconcile.Driver[intent.VNI, intent.VRFPolicy]
	announcements reconcile.Driver[intent.RouteKey, intent.Announcement]
}

// sources tell whether what a table is computed from is complete. They are
// called with the pipeline's lock held.
type sources struct {
	ovn func() bool // Southbound and local databases
	bgp func() bool // every neighbour has sent its End-of-RIB, or has run out of time
	// lingers: the next hops of a route that BGP no longer shows may come back.
	lingers func(hops intent.NextHopSet, known func(netip.Addr) bool) bool
}

// tables are the wanted and actual tables of this node, in order.
type tables struct {
	pipeline      *reconcile.Pipeline
	bridges       *reconcile.Table[intent.BridgeKey, intent.Bridge]
	vrfs          *reconcile.Table[intent.VNI, intent.VRF]
	gateways      *reconcile.Table[intent.GatewayKey, intent.Gateway]
	served        *reconcile.Table[intent.ServedKey, intent.Served]
	vteps         *reconcile.Table[netip.Addr, intent.VTEP]
	routes        *reconcile.Table[intent.RouteKey, intent.Route]
	steering      *reconcile.Table[intent.SteeringKey, intent.Steering]
	policies      *reconcile.Table[intent.VNI, intent.VRFPolicy]
	announcements *reconcile.Table[intent.RouteKey, intent.Announcement]
}

func newTables(d drivers, src sources, reg *status.Registry, log *slog.Logger) *tables {
	t := &tables{}
	t.bridges = reconcile.NewTable("bridges", d.bridges, reconcile.TableOptions[intent.BridgeKey, intent.Bridge]{
		Hold:    holdUnless[intent.BridgeKey, intent.Bridge](src.ovn),
		Observe: observe(reg.Reporter("bridges"), "bridge", t.bridgesChanged),
	})
	t.vrfs = reconcile.NewTable("vrfs", d.vrfs, reconcile.TableOptions[intent.VNI, intent.VRF]{
		Hold:    holdUnless[intent.VNI, intent.VRF](src.ovn),
		Observe: observe(reg.Reporter("vrfs"), "vrf", t.vrfsChanged),
	})
	t.gateways = reconcile.NewTable("gateways", d.gateways, reconcile.TableOptions[intent.GatewayKey, intent.Gateway]{
		Hold:    holdUnless[intent.GatewayKey, intent.Gateway](src.ovn),
		Observe: observe(reg.Reporter("gateways"), "gateway", t.gatewaysChanged),
	})
	t.served = reconcile.NewTable("served", d.served, reconcile.TableOptions[intent.ServedKey, intent.Served]{
		Hold:    holdUnless[intent.ServedKey, intent.Served](src.ovn),
		Observe: observe[intent.ServedKey](reg.Reporter("served"), "next-hop", nil),
	})
	t.vteps = reconcile.NewTable("vteps", d.vteps, reconcile.TableOptions[netip.Addr, intent.VTEP]{
		Hold:    func(netip.Addr, intent.VTEP) bool { return !src.bgp() || src.lingers("", nil) },
		Observe: observe[netip.Addr](reg.Reporter("vteps"), "vtep", nil),
	})
	t.routes = reconcile.NewTable("routes", d.routes, reconcile.TableOptions[intent.RouteKey, intent.Route]{
		Hold:    t.holdRoute(src),
		Observe: observe(reg.Reporter("routes"), "route", t.routesChanged),
	})
	t.steering = reconcile.NewTable("steering", d.steering, reconcile.TableOptions[intent.SteeringKey, intent.Steering]{
		Hold:    holdUnless[intent.SteeringKey, intent.Steering](src.ovn),
		Observe: observe(reg.Reporter("steering"), "flow", t.steeringChanged),
	})
	t.policies = reconcile.NewTable("policies", d.policies, reconcile.TableOptions[intent.VNI, intent.VRFPolicy]{
		Hold:    holdUnless[intent.VNI, intent.VRFPolicy](src.ovn),
		Observe: observe[intent.VNI](reg.Reporter("policies"), "policy", nil),
	})
	t.announcements = reconcile.NewTable("announcements", d.announcements, reconcile.TableOptions[intent.RouteKey, intent.Announcement]{
		Hold:    holdUnless[intent.RouteKey, intent.Announcement](src.ovn),
		Gate:    t.announceGate,
		Observe: observe[intent.RouteKey](reg.Reporter("announcements"), "announcement", nil),
	})
	t.pipeline = reconcile.NewPipeline(reconcile.PipelineOptions{Log: log},
		t.bridges, t.vrfs, t.gateways, t.served, t.vteps, t.routes, t.steering, t.policies, t.announcements)
	return t
}

// announceGate lets a route be announced once packets for it would arrive: the
// whole way from the fabric into OVN and back is programmed.
func (t *tables) announceGate(k intent.RouteKey, a intent.Announcement) error {
	toOVN := intent.SteeringKey{Gateway: a.Gateway, Kind: intent.SteerToOVN}
	switch {
	case !t.bridges.ProgrammedLocked(a.Gateway.Bridge):
		return fmt.Errorf("%w for the veth pair of bridge %s", reconcile.ErrNotReady, a.Gateway.Bridge)
	case !t.vrfs.ProgrammedLocked(k.VNI):
		return fmt.Errorf("%w for VRF %s", reconcile.ErrNotReady, k.VNI)
	case !t.gateways.ProgrammedLocked(a.Gateway):
		return fmt.Errorf("%w for gateway %s", reconcile.ErrNotReady, a.Gateway)
	case !t.steering.ProgrammedLocked(toOVN):
		return fmt.Errorf("%w for flow %s", reconcile.ErrNotReady, toOVN)
	case !t.routes.ProgrammedLocked(k):
		return fmt.Errorf("%w for route %s", reconcile.ErrNotReady, k)
	}
	return nil
}

// holdRoute keeps a local route until OVN is in sync, and an imported one until
// BGP is; but the imports of a VRF that OVN took away go with it.
func (t *tables) holdRoute(src sources) func(intent.RouteKey, intent.Route) bool {
	return func(k intent.RouteKey, r intent.Route) bool {
		if r.Kind != intent.RouteRemote || !t.vrfs.WantedLocked(k.VNI) {
			return !src.ovn()
		}
		return !src.bgp() || src.lingers(r.NextHops, t.vteps.WantedLocked)
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
			rep.Set(status.Object{Kind: kind, Key: fmt.Sprint(e.Key), State: status.Error, Reason: reasonOf(e.Err), Error: e.Err.Error()})
		}
		if changed != nil {
			changed(events)
		}
	}
}
