package tables

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// Drivers are the actual sides: one for each table of pkg/intent. Those of the
// kernel path may be nil: then nothing is on it, and nothing can be. Those of
// UnderlayDevices and LearnedRoutes may be nil, too.
type Drivers struct {
	Bridges        reconcile.Driver[intent.BridgeKey, intent.Bridge]
	KernelVRFs     reconcile.Driver[intent.VNI, intent.KernelVRF]
	KernelGateways reconcile.Driver[intent.GatewayKey, intent.KernelGateway]
	KernelRoutes   reconcile.Driver[intent.RouteKey, intent.Route]
	VRFs           reconcile.Driver[intent.VNI, intent.VRF]
	Gateways       reconcile.Driver[intent.GatewayKey, intent.Gateway]
	Served         reconcile.Driver[intent.ServedKey, intent.Served]
	VTEPs          reconcile.Driver[netip.Addr, intent.VTEP]
	// VIPs may be nil: then none is served.
	VIPs reconcile.Driver[intent.VIPKey, intent.VIP]
	// BackendRoutes may be nil, too.
	BackendRoutes reconcile.Driver[intent.RouteKey, intent.BackendRoute]
	Routes        reconcile.Driver[intent.RouteKey, intent.Route]
	// UnderlayDevices are where packets for the default VRF come in.
	UnderlayDevices reconcile.Driver[string, intent.UnderlayDevice]
	Steering        reconcile.Driver[intent.SteeringKey, intent.Steering]
	Policies        reconcile.Driver[intent.VNI, intent.VRFPolicy]
	Announcements   reconcile.Driver[intent.RouteKey, intent.Announcement]
	// LearnedRoutes are what is given back to OVN.
	LearnedRoutes reconcile.Driver[intent.LearnedKey, intent.LearnedRoute]
}

// Sources tell whether what a table is computed from is complete. They are
// called with the pipeline's lock held, and without it.
type Sources struct {
	OVN func() bool // Southbound and local databases
	BGP func() bool // every neighbour has sent its End-of-RIB, or has run out of time
	// Pending: Northbound rows that decide what a VRF exposes are still to come.
	Pending func(intent.VNI) bool
	// Lingers: the next hops of a route that BGP no longer shows may come back.
	Lingers func(hops intent.NextHopSet, known func(netip.Addr) bool) bool
	// Better, when set, tells whether another node announces the route, too.
	Better func(intent.RouteKey) bool
	// LearnedBy is the VRF whose imported routes a routing table gets; false if it gets
	// none. It may be nil where LearnedRoutes has no driver.
	LearnedBy func(table uint32) (intent.VNI, bool)
	// Turn, when set, tells why no VRF may change its path now; nil when one may. See
	// TurnCame.
	Turn func() error
	// Kept, when set, tells whether the index of a VRF outlives the process. Until it does
	// the VRF stays as it is: see IndicesKept.
	Kept func(intent.VNI) bool
	// Fabric, when set, tells why packets of the fabric to a VRF would be lost before
	// any row counts; nil when they would not.
	Fabric func(intent.VNI) error
}

// Options are what tables need beside drivers and sources.
type Options struct {
	// Status is told of the rows that fail.
	Status *status.Registry
	Log    *slog.Logger
	// Dry: only compare.
	Dry bool
	// Backends is how many rows BackendRoutes has room for.
	Backends int
	// Passed, when set, is told how long each pass took.
	Passed func(time.Duration)
	// Routed, when set, is told what became of rows of Routes.
	Routed func([]reconcile.Event[intent.RouteKey])
	// Announced, when set, is told what became of announcements.
	Announced func([]reconcile.Event[intent.RouteKey])
}

// Tables are the wanted and actual tables of a node, in order.
type Tables struct {
	src      Sources
	Pipeline *reconcile.Pipeline
	// paths says which tables have the routes of a VRF, where that is not Routes
	// alone. Guarded by the pipeline.
	paths           map[intent.VNI]carried
	moves           *moves
	ways            *ways
	Bridges         *reconcile.Table[intent.BridgeKey, intent.Bridge]
	KernelVRFs      *reconcile.Table[intent.VNI, intent.KernelVRF]
	KernelGateways  *reconcile.Table[intent.GatewayKey, intent.KernelGateway]
	KernelRoutes    *reconcile.Table[intent.RouteKey, intent.Route]
	VRFs            *reconcile.Table[intent.VNI, intent.VRF]
	Gateways        *reconcile.Table[intent.GatewayKey, intent.Gateway]
	Served          *reconcile.Table[intent.ServedKey, intent.Served]
	VTEPs           *reconcile.Table[netip.Addr, intent.VTEP]
	BackendRoutes   *reconcile.Table[intent.RouteKey, intent.BackendRoute]
	VIPs            *reconcile.Table[intent.VIPKey, intent.VIP]
	Routes          *reconcile.Table[intent.RouteKey, intent.Route]
	UnderlayDevices *reconcile.Table[string, intent.UnderlayDevice]
	Steering        *reconcile.Table[intent.SteeringKey, intent.Steering]
	Policies        *reconcile.Table[intent.VNI, intent.VRFPolicy]
	Announcements   *reconcile.Table[intent.RouteKey, intent.Announcement]
	LearnedRoutes   *reconcile.Table[intent.LearnedKey, intent.LearnedRoute]
}

// New makes the tables, empty. It does no I/O.
func New(d Drivers, src Sources, opts Options) *Tables {
	t, reg := &Tables{src: src, paths: map[intent.VNI]carried{}, moves: newMoves(), ways: newWays(opts.Backends)}, opts.Status
	t.Bridges = fromOVN("bridges", d.Bridges, src, func(b intent.BridgeKey, _ intent.Bridge) bool { return t.moves.bridge(b) }, nil,
		observeWaits(reg.Reporter("bridges"), "bridge", newWaits(reg, itself[intent.BridgeKey], t.bridgeWaits), t.bridgesChanged))
	t.kernelPath(d, opts.Status)
	t.VRFs = reconcile.NewTable("vrfs", d.VRFs, reconcile.TableOptions[intent.VNI, intent.VRF]{
		Hold:    func(vni intent.VNI, _ intent.VRF) bool { return !src.OVN() || t.moves.vrf(vni) },
		Await:   t.awaitVRF,
		Behind:  inVRF(t, func(vni intent.VNI, _ intent.VRF) intent.VNI { return vni }),
		Observe: observe(reg.Reporter("vrfs"), "vrf", t.vrfsChanged),
	})
	t.Gateways = fromOVN("gateways", d.Gateways, src, func(k intent.GatewayKey, _ intent.Gateway) bool { return t.moves.gateway(k) },
		atGateway[intent.GatewayKey, intent.Gateway](t, itself[intent.GatewayKey]),
		observe(reg.Reporter("gateways"), "gateway", t.gatewaysChanged))
	t.Served = fromOVN("served", d.Served, src, func(k intent.ServedKey, _ intent.Served) bool { return t.moves.segment(k.Gateway) },
		atGateway[intent.ServedKey, intent.Served](t, func(k intent.ServedKey) intent.GatewayKey { return k.Gateway }),
		observe[intent.ServedKey](reg.Reporter("served"), "next-hop", nil))
	t.VTEPs = reconcile.NewTable("vteps", d.VTEPs, reconcile.TableOptions[netip.Addr, intent.VTEP]{
		Hold:    t.holdVTEP,
		Behind:  t.behindVTEP,
		Observe: observe[netip.Addr](reg.Reporter("vteps"), "vtep", nil),
	})
	t.BackendRoutes = reconcile.NewTable("backend-routes", orNone(d.BackendRoutes), reconcile.TableOptions[intent.RouteKey, intent.BackendRoute]{
		Hold:    func(k intent.RouteKey, _ intent.BackendRoute) bool { return t.holdVIPs(k.VNI) },
		Linger:  t.lingerTo,
		Behind:  inVRF(t, func(k intent.RouteKey, _ intent.BackendRoute) intent.VNI { return k.VNI }),
		Observe: observe(reg.Reporter("backend-routes"), "backend-route", t.toChanged),
	})
	t.VIPs = reconcile.NewTable("vips", orNone(d.VIPs), reconcile.TableOptions[intent.VIPKey, intent.VIP]{
		Hold: func(k intent.VIPKey, _ intent.VIP) bool { return t.holdVIPs(k.VNI) }, Await: t.awaitVIP,
		Behind:  untilWithdrawn(t, func(k intent.VIPKey, _ intent.VIP) intent.VNI { return k.VNI }),
		Observe: observe(reg.Reporter("vips"), "vip", t.vipsChanged),
	})
	t.Routes = reconcile.NewTable("routes", d.Routes, reconcile.TableOptions[intent.RouteKey, intent.Route]{
		Hold: t.holdRoute(intent.PathEBPF), Behind: t.behindRoute, Observe: observe(reg.Reporter("routes"), "route", t.ebpfRoutesChanged(opts.Routed)),
	})
	t.UnderlayDevices = reconcile.NewTable("underlay-devices", orNone(d.UnderlayDevices), reconcile.TableOptions[string, intent.UnderlayDevice]{
		Behind:  inVRF(t, func(string, intent.UnderlayDevice) intent.VNI { return intent.DefaultVRF }),
		Observe: observe(reg.Reporter("underlay-devices"), "underlay-device", t.underlayDevicesChanged),
	})
	t.Steering = reconcile.NewTable("steering", d.Steering, reconcile.TableOptions[intent.SteeringKey, intent.Steering]{
		Hold: t.holdFlow, Linger: t.lingerFrom, Early: early, Await: t.awaitFlow,
		Behind:  atGateway[intent.SteeringKey, intent.Steering](t, func(k intent.SteeringKey) intent.GatewayKey { return k.Gateway }),
		Observe: observeWaits(reg.Reporter("steering"), "flow", newWaits(reg, flowGateway, t.gatewayWaits), t.steeringChanged),
	})
	t.Policies = reconcile.NewTable("policies", d.Policies, reconcile.TableOptions[intent.VNI, intent.VRFPolicy]{
		Hold:    func(vni intent.VNI, _ intent.VRFPolicy) bool { return !src.OVN() || t.moves.vrf(vni) },
		Await:   func(vni intent.VNI, _, _ intent.VRFPolicy, _ bool) error { return t.awaitIndex(vni) },
		Behind:  untilWithdrawn(t, func(vni intent.VNI, _ intent.VRFPolicy) intent.VNI { return vni }),
		Observe: observe(reg.Reporter("policies"), "policy", t.policiesChanged),
	})
	t.Announcements = reconcile.NewTable("announcements", d.Announcements, reconcile.TableOptions[intent.RouteKey, intent.Announcement]{
		Hold:    t.holdAnnouncement,
		Gate:    gates{t, false}.announcement,
		Behind:  t.behindAnnouncement,
		Observe: observe(reg.Reporter("announcements"), "announcement", opts.Announced),
	})
	// A router that has a route sends at once: the last of the tables is made last, and
	// what is not wanted of it goes first.
	t.LearnedRoutes = reconcile.NewTable("learned-routes", orNone(d.LearnedRoutes), reconcile.TableOptions[intent.LearnedKey, intent.LearnedRoute]{
		Hold: t.holdLearned, Behind: t.behindLearned, Observe: observe[intent.LearnedKey](reg.Reporter("learned-routes"), "learned-route", nil),
	})
	t.Pipeline = reconcile.NewPipeline(reconcile.PipelineOptions{Log: opts.Log, Dry: opts.Dry, Passed: opts.Passed},
		t.Bridges, t.KernelVRFs, t.KernelGateways, t.KernelRoutes, t.VRFs, t.Gateways, t.Served, t.VTEPs, t.BackendRoutes, t.Steering.Early(), t.VIPs, t.Routes, t.UnderlayDevices, t.Steering, t.Policies, t.Announcements, t.LearnedRoutes)
	return t
}

// kernelPath makes the tables of the kernel path.
func (t *Tables) kernelPath(d Drivers, reg *status.Registry) {
	held := func(vni intent.VNI) bool {
		return !t.src.OVN() || t.moves.vrf(vni) || t.onOtherPath(vni, intent.PathKernel)
	}
	t.KernelVRFs = reconcile.NewTable("kernel-vrfs", orNone(d.KernelVRFs), reconcile.TableOptions[intent.VNI, intent.KernelVRF]{
		Hold:    func(vni intent.VNI, _ intent.KernelVRF) bool { return held(vni) },
		Behind:  inVRF(t, func(vni intent.VNI, _ intent.KernelVRF) intent.VNI { return vni }),
		Observe: observe(reg.Reporter("kernel-vrfs"), "kernel-vrf", t.kernelVRFsChanged),
	})
	t.KernelGateways = reconcile.NewTable("kernel-gateways", orNone(d.KernelGateways), reconcile.TableOptions[intent.GatewayKey, intent.KernelGateway]{
		Hold:    func(_ intent.GatewayKey, g intent.KernelGateway) bool { return held(g.VNI) },
		Behind:  inVRF(t, func(_ intent.GatewayKey, g intent.KernelGateway) intent.VNI { return g.VNI }),
		Observe: observe(reg.Reporter("kernel-gateways"), "kernel-gateway", t.kernelGatewaysChanged),
	})
	t.KernelRoutes = reconcile.NewTable("kernel-routes", orNone(d.KernelRoutes), reconcile.TableOptions[intent.RouteKey, intent.Route]{
		Hold: t.holdRoute(intent.PathKernel), Behind: t.behindRoute, Observe: observe(reg.Reporter("kernel-routes"), "kernel-route", t.routesChanged),
	})
}

func orNone[K, V comparable](d reconcile.Driver[K, V]) reconcile.Driver[K, V] {
	if d == nil {
		return reconcile.ReadOnly(reconcile.Unseen[K, V]{})
	}
	return d
}

// fromOVN is a table that is computed from OVN alone. left tells whether a row is kept
// since a gateway port has gone; behind may be nil.
func fromOVN[K, V comparable](name string, d reconcile.Driver[K, V], src Sources, left func(K, V) bool,
	behind func(stage, bool) func(K, V) bool, observe func([]reconcile.Event[K])) *reconcile.Table[K, V] {
	return reconcile.NewTable(name, d, reconcile.TableOptions[K, V]{
		Hold: func(k K, v V) bool { return !src.OVN() || left(k, v) }, Behind: behind, Observe: observe,
	})
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

// observeWaits is observe, and reports what waits for too long.
func observeWaits[K, O comparable](rep *status.Reporter, kind string, waits *waits[K, O], changed func([]reconcile.Event[K])) func([]reconcile.Event[K]) {
	return observe(rep, kind, func(events []reconcile.Event[K]) {
		waits.observe(events)
		changed(events)
	})
}
