package evpn

import (
	"maps"
	"slices"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// Tables are the intent tables that this package computes, by the names of
// pkg/intent. Routes holds local and block rows only, of both paths: whoever
// joins them with those of BGP puts them into Routes or KernelRoutes, by VRF.Path.
// Relays is the way to what is
// behind gateway ports that may come, and Standby where these are. A relay without
// next hops is one that is not known yet.
type Tables struct {
	Bridges        map[intent.BridgeKey]intent.Bridge
	KernelVRFs     map[intent.VNI]intent.KernelVRF
	KernelGateways map[intent.GatewayKey]intent.KernelGateway
	VRFs           map[intent.VNI]intent.VRF
	Policies       map[intent.VNI]intent.VRFPolicy
	Gateways       map[intent.GatewayKey]intent.Gateway
	Served         map[intent.ServedKey]intent.Served
	BackendRoutes  map[intent.RouteKey]intent.BackendRoute
	VIPs           map[intent.VIPKey]intent.VIP
	Routes         map[intent.RouteKey]intent.Route
	Steering       map[intent.SteeringKey]intent.Steering
	Announcements  map[intent.RouteKey]intent.Announcement
	Relays         map[intent.RouteKey]intent.Route
	Standby        map[intent.GatewayKey]Place
	// Learners are the gateway ports here that routes can be given to OVN by.
	Learners map[intent.GatewayKey]Learner
}

// NewTables are empty tables.
func NewTables() Tables {
	return Tables{
		Bridges:        map[intent.BridgeKey]intent.Bridge{},
		KernelVRFs:     map[intent.VNI]intent.KernelVRF{},
		KernelGateways: map[intent.GatewayKey]intent.KernelGateway{},
		VRFs:           map[intent.VNI]intent.VRF{},
		Policies:       map[intent.VNI]intent.VRFPolicy{},
		Gateways:       map[intent.GatewayKey]intent.Gateway{},
		Served:         map[intent.ServedKey]intent.Served{},
		BackendRoutes:  map[intent.RouteKey]intent.BackendRoute{},
		VIPs:           map[intent.VIPKey]intent.VIP{},
		Routes:         map[intent.RouteKey]intent.Route{},
		Steering:       map[intent.SteeringKey]intent.Steering{}, Announcements: map[intent.RouteKey]intent.Announcement{},
		Relays: map[intent.RouteKey]intent.Route{}, Standby: map[intent.GatewayKey]Place{}, Learners: map[intent.GatewayKey]Learner{},
	}
}

// packed are the tables of a VRF to keep: a row has its key in itself, and a list
// has no room to spare. As maps the tables of a VRF take three times as much.
type packed struct {
	kernelVRFs     []intent.KernelVRF
	kernelGateways []intent.KernelGateway
	vrfs           []intent.VRF
	policies       []intent.VRFPolicy
	gateways       []intent.Gateway
	served         []intent.Served
	backendRoutes  []intent.BackendRoute
	vips           []intent.VIP
	routes         []intent.Route
	steering       []intent.Steering
	announcements  []intent.Announcement
	relays         []intent.Route
	standby        []placed
	learners       []Learner
}

// placed is a row of Standby.
type placed struct {
	gateway intent.GatewayKey
	place   Place
}

func (t Tables) pack() packed {
	var standby []placed
	for k, p := range t.Standby {
		standby = append(standby, placed{k, p})
	}
	return packed{
		relays: pack(t.Relays), standby: slices.Clip(standby), learners: pack(t.Learners),
		kernelVRFs: pack(t.KernelVRFs), kernelGateways: pack(t.KernelGateways),
		vrfs: pack(t.VRFs), policies: pack(t.Policies), gateways: pack(t.Gateways),
		served: pack(t.Served), backendRoutes: pack(t.BackendRoutes), vips: pack(t.VIPs), routes: pack(t.Routes), steering: pack(t.Steering), announcements: pack(t.Announcements),
	}
}

func (p packed) tables() Tables {
	t := NewTables()
	t.add(p)
	return t
}

func pack[K, V comparable](m map[K]V) []V {
	return slices.AppendSeq(make([]V, 0, len(m)), maps.Values(m))
}

func (t Tables) add(p packed) {
	for _, v := range p.kernelVRFs {
		t.KernelVRFs[v.VNI] = v
	}
	for _, g := range p.kernelGateways {
		t.KernelGateways[g.Key] = g
	}
	for _, v := range p.vrfs {
		t.VRFs[v.VNI] = v
	}
	for _, v := range p.policies {
		t.Policies[v.VNI] = v
	}
	for _, g := range p.gateways {
		t.Gateways[g.Key] = g
	}
	for _, s := range p.served {
		t.Served[s.Key] = s
	}
	for _, r := range p.backendRoutes {
		t.BackendRoutes[r.Key] = r
	}
	for _, v := range p.vips {
		t.VIPs[v.Key] = v
	}
	for _, r := range p.routes {
		t.Routes[r.Key] = r
	}
	for _, s := range p.steering {
		t.Steering[s.Key] = s
	}
	for _, a := range p.announcements {
		t.Announcements[a.Key] = a
	}
	for _, r := range p.relays {
		t.Relays[r.Key] = r
	}
	for _, s := range p.standby {
		t.Standby[s.gateway] = s.place
	}
	for _, l := range p.learners {
		t.Learners[l.Gateway] = l
	}
}

// Difference is the difference of all tables between two steps.
type Difference struct {
	Bridges        wanted.Delta[intent.BridgeKey, intent.Bridge]
	KernelVRFs     wanted.Delta[intent.VNI, intent.KernelVRF]
	KernelGateways wanted.Delta[intent.GatewayKey, intent.KernelGateway]
	VRFs           wanted.Delta[intent.VNI, intent.VRF]
	Policies       wanted.Delta[intent.VNI, intent.VRFPolicy]
	Gateways       wanted.Delta[intent.GatewayKey, intent.Gateway]
	Served         wanted.Delta[intent.ServedKey, intent.Served]
	BackendRoutes  wanted.Delta[intent.RouteKey, intent.BackendRoute]
	VIPs           wanted.Delta[intent.VIPKey, intent.VIP]
	Routes         wanted.Delta[intent.RouteKey, intent.Route]
	Steering       wanted.Delta[intent.SteeringKey, intent.Steering]
	Announcements  wanted.Delta[intent.RouteKey, intent.Announcement]
	Relays         wanted.Delta[intent.RouteKey, intent.Route]
	Standby        wanted.Delta[intent.GatewayKey, Place]
	Learners       wanted.Delta[intent.GatewayKey, Learner]
}

// Empty tells whether no table differs.
func (d Difference) Empty() bool {
	return d.Bridges.Empty() && d.VRFs.Empty() && d.Policies.Empty() && d.Gateways.Empty() &&
		d.Served.Empty() && d.BackendRoutes.Empty() && d.VIPs.Empty() && d.Routes.Empty() && d.Steering.Empty() && d.Announcements.Empty() &&
		d.KernelVRFs.Empty() && d.KernelGateways.Empty() && d.Relays.Empty() && d.Standby.Empty() && d.Learners.Empty()
}

// Diff compares two sets of tables.
func Diff(old, next Tables) Difference {
	return Difference{
		Bridges:    wanted.NewDelta(old.Bridges, next.Bridges),
		KernelVRFs: wanted.NewDelta(old.KernelVRFs, next.KernelVRFs), KernelGateways: wanted.NewDelta(old.KernelGateways, next.KernelGateways),
		VRFs:     wanted.NewDelta(old.VRFs, next.VRFs),
		Policies: wanted.NewDelta(old.Policies, next.Policies), Gateways: wanted.NewDelta(old.Gateways, next.Gateways),
		Served: wanted.NewDelta(old.Served, next.Served), BackendRoutes: wanted.NewDelta(old.BackendRoutes, next.BackendRoutes), VIPs: wanted.NewDelta(old.VIPs, next.VIPs), Routes: wanted.NewDelta(old.Routes, next.Routes),
		Steering: wanted.NewDelta(old.Steering, next.Steering), Announcements: wanted.NewDelta(old.Announcements, next.Announcements),
		Relays: wanted.NewDelta(old.Relays, next.Relays), Standby: wanted.NewDelta(old.Standby, next.Standby), Learners: wanted.NewDelta(old.Learners, next.Learners),
	}
}
