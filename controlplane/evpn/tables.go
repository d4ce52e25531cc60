package evpn

import (
	"maps"
	"slices"

	"github.com/ovn-sluice/sluice/pkg/intent"
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

// Delta is the difference of one table: rows to put and keys to remove.
type Delta[K, V comparable] struct {
	Set    map[K]V
	Delete []K
}

// Empty tells whether nothing differs.
func (d Delta[K, V]) Empty() bool { return len(d.Set) == 0 && len(d.Delete) == 0 }

// Difference is the difference of all tables between two steps.
type Difference struct {
	Bridges        Delta[intent.BridgeKey, intent.Bridge]
	KernelVRFs     Delta[intent.VNI, intent.KernelVRF]
	KernelGateways Delta[intent.GatewayKey, intent.KernelGateway]
	VRFs           Delta[intent.VNI, intent.VRF]
	Policies       Delta[intent.VNI, intent.VRFPolicy]
	Gateways       Delta[intent.GatewayKey, intent.Gateway]
	Served         Delta[intent.ServedKey, intent.Served]
	BackendRoutes  Delta[intent.RouteKey, intent.BackendRoute]
	VIPs           Delta[intent.VIPKey, intent.VIP]
	Routes         Delta[intent.RouteKey, intent.Route]
	Steering       Delta[intent.SteeringKey, intent.Steering]
	Announcements  Delta[intent.RouteKey, intent.Announcement]
	Relays         Delta[intent.RouteKey, intent.Route]
	Standby        Delta[intent.GatewayKey, Place]
	Learners       Delta[intent.GatewayKey, Learner]
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
		Bridges:    NewDelta(old.Bridges, next.Bridges),
		KernelVRFs: NewDelta(old.KernelVRFs, next.KernelVRFs), KernelGateways: NewDelta(old.KernelGateways, next.KernelGateways),
		VRFs:     NewDelta(old.VRFs, next.VRFs),
		Policies: NewDelta(old.Policies, next.Policies), Gateways: NewDelta(old.Gateways, next.Gateways),
		Served: NewDelta(old.Served, next.Served), BackendRoutes: NewDelta(old.BackendRoutes, next.BackendRoutes), VIPs: NewDelta(old.VIPs, next.VIPs), Routes: NewDelta(old.Routes, next.Routes),
		Steering: NewDelta(old.Steering, next.Steering), Announcements: NewDelta(old.Announcements, next.Announcements),
		Relays: NewDelta(old.Relays, next.Relays), Standby: NewDelta(old.Standby, next.Standby), Learners: NewDelta(old.Learners, next.Learners),
	}
}

// NewDelta is the difference between two states of one table.
func NewDelta[K, V comparable](old, next map[K]V) Delta[K, V] {
	var d Delta[K, V]
	for k, v := range next {
		if o, ok := old[k]; !ok || o != v {
			if d.Set == nil {
				d.Set = map[K]V{}
			}
			d.Set[k] = v
		}
	}
	for k := range old {
		if _, ok := next[k]; !ok {
			d.Delete = append(d.Delete, k)
		}
	}
	return d
}
