package tables

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

var (
	eBPF     = []intent.Path{intent.PathEBPF}
	kernel   = []intent.Path{intent.PathKernel}
	bothWays = []intent.Path{intent.PathEBPF, intent.PathKernel}
)

// order is that of a gateway node's tables: rows are added in it, and removed the other way.
// Announcements come behind all that carries what they announce: program, then announce; withdraw,
// then remove. A router that has a learned route sends at once: that table is the last.
var order = []entry[*Tables]{
	bridges, kernelVRFs, kernelGateways, kernelRoutes, vrfs, gateways, servedNextHops, vteps, backendRoutes,
	early[*Tables, intent.SteeringKey, intent.Steering]{steeringFlows}, vips, routes, underlayDevices, steeringFlows, policies, announcements, learnedRoutes,
}

var bridges = table[*Tables, intent.BridgeKey, intent.Bridge]{
	of: intent.Bridges, from: fromOVN,
	options: func(t *Tables, opts Options) reconcile.TableOptions[intent.BridgeKey, intent.Bridge] {
		return reconcile.TableOptions[intent.BridgeKey, intent.Bridge]{
			Hold:    func(b intent.BridgeKey, _ intent.Bridge) bool { return !t.src.OVN() || t.moves.bridge(b) },
			Observe: alsoWaits(newWaits(opts.Status, itself[intent.BridgeKey], t.bridgeWaits), t.bridgesChanged),
		}
	},
}

var kernelVRFs = table[*Tables, intent.VNI, intent.KernelVRF]{
	of: intent.KernelVRFs, from: fromOVN, paths: kernel,
	options: func(t *Tables, _ Options) reconcile.TableOptions[intent.VNI, intent.KernelVRF] {
		return reconcile.TableOptions[intent.VNI, intent.KernelVRF]{
			Hold:    func(vni intent.VNI, _ intent.KernelVRF) bool { return t.holdKernel(vni) },
			Behind:  inVRF(t, func(vni intent.VNI, _ intent.KernelVRF) intent.VNI { return vni }),
			Observe: t.kernelVRFsChanged,
		}
	},
}

var kernelGateways = table[*Tables, intent.GatewayKey, intent.KernelGateway]{
	of: intent.KernelGateways, from: fromOVN, paths: kernel,
	options: func(t *Tables, _ Options) reconcile.TableOptions[intent.GatewayKey, intent.KernelGateway] {
		return reconcile.TableOptions[intent.GatewayKey, intent.KernelGateway]{
			Hold:    func(_ intent.GatewayKey, g intent.KernelGateway) bool { return t.holdKernel(g.VNI) },
			Behind:  inVRF(t, func(_ intent.GatewayKey, g intent.KernelGateway) intent.VNI { return g.VNI }),
			Observe: t.kernelGatewaysChanged,
		}
	},
	excused: func(w expected) func(intent.GatewayKey, intent.KernelGateway) bool {
		return func(k intent.GatewayKey, _ intent.KernelGateway) bool { return w.idle(k) }
	},
}

// kernelRoutes has those rows of intent.Routes whose VRFs are on the kernel path: see SetRoutes.
var kernelRoutes = table[*Tables, intent.RouteKey, intent.Route]{
	of: intent.KernelRoutes, from: fromOVN | fromBGP, paths: kernel, apart: true,
	options: func(t *Tables, _ Options) reconcile.TableOptions[intent.RouteKey, intent.Route] {
		return reconcile.TableOptions[intent.RouteKey, intent.Route]{
			Hold: t.holdRoute(intent.PathKernel), Behind: t.behindRoute, Observe: t.routesChanged,
		}
	},
	excused: func(w expected) func(intent.RouteKey, intent.Route) bool { return w.route },
}

var vrfs = table[*Tables, intent.VNI, intent.VRF]{
	of: intent.VRFs, from: fromOVN,
	options: func(t *Tables, _ Options) reconcile.TableOptions[intent.VNI, intent.VRF] {
		return reconcile.TableOptions[intent.VNI, intent.VRF]{
			Hold:    func(vni intent.VNI, _ intent.VRF) bool { return !t.src.OVN() || t.moves.vrf(vni) },
			Await:   t.awaitVRF,
			Behind:  inVRF(t, func(vni intent.VNI, _ intent.VRF) intent.VNI { return vni }),
			Observe: t.vrfsChanged,
		}
	},
	onSet:    func(t *Tables, all map[intent.VNI]intent.VRF) { t.SetVRFs(all) },
	onUpdate: func(t *Tables, d wanted.Delta[intent.VNI, intent.VRF]) { t.UpdateVRFs(d.Set, d.Delete) },
	excused: func(w expected) func(intent.VNI, intent.VRF) bool {
		return func(vni intent.VNI, _ intent.VRF) bool { return w.vrfs()[vni] }
	},
}

var gateways = table[*Tables, intent.GatewayKey, intent.Gateway]{
	of: intent.Gateways, from: fromOVN, paths: eBPF,
	options: func(t *Tables, _ Options) reconcile.TableOptions[intent.GatewayKey, intent.Gateway] {
		return reconcile.TableOptions[intent.GatewayKey, intent.Gateway]{
			Hold:    func(k intent.GatewayKey, _ intent.Gateway) bool { return !t.src.OVN() || t.moves.gateway(k) },
			Behind:  atGateway[intent.GatewayKey, intent.Gateway](t, itself[intent.GatewayKey]),
			Observe: t.gatewaysChanged,
		}
	},
	excused: func(w expected) func(intent.GatewayKey, intent.Gateway) bool {
		return func(k intent.GatewayKey, _ intent.Gateway) bool { return w.idle(k) }
	},
}

var servedNextHops = table[*Tables, intent.ServedKey, intent.Served]{
	of: intent.ServedNextHops, from: fromOVN, paths: eBPF,
	options: func(t *Tables, _ Options) reconcile.TableOptions[intent.ServedKey, intent.Served] {
		return reconcile.TableOptions[intent.ServedKey, intent.Served]{
			Hold:   func(k intent.ServedKey, _ intent.Served) bool { return !t.src.OVN() || t.moves.segment(k.Gateway) },
			Behind: atGateway[intent.ServedKey, intent.Served](t, func(k intent.ServedKey) intent.GatewayKey { return k.Gateway }),
		}
	},
	excused: func(w expected) func(intent.ServedKey, intent.Served) bool {
		return func(k intent.ServedKey, _ intent.Served) bool { return w.idle(k.Gateway) }
	},
}

var vteps = table[*Tables, netip.Addr, intent.VTEP]{
	of: intent.VTEPs, from: fromBGP, paths: bothWays,
	options: func(t *Tables, _ Options) reconcile.TableOptions[netip.Addr, intent.VTEP] {
		return reconcile.TableOptions[netip.Addr, intent.VTEP]{Hold: t.holdVTEP, Behind: t.behindVTEP}
	},
}

var backendRoutes = table[*Tables, intent.RouteKey, intent.BackendRoute]{
	of: intent.BackendRoutes, from: fromOVN, paths: eBPF,
	options: func(t *Tables, _ Options) reconcile.TableOptions[intent.RouteKey, intent.BackendRoute] {
		return reconcile.TableOptions[intent.RouteKey, intent.BackendRoute]{
			Hold:    func(k intent.RouteKey, _ intent.BackendRoute) bool { return t.holdVIPs(k.VNI) },
			Linger:  t.lingerTo,
			Behind:  inVRF(t, func(k intent.RouteKey, _ intent.BackendRoute) intent.VNI { return k.VNI }),
			Observe: t.toChanged,
		}
	},
	excused: func(w expected) func(intent.RouteKey, intent.BackendRoute) bool {
		return func(_ intent.RouteKey, r intent.BackendRoute) bool { return w.missing(r.Gateway) }
	},
}

var vips = table[*Tables, intent.VIPKey, intent.VIP]{
	of: intent.VIPs, from: fromOVN, paths: eBPF,
	options: func(t *Tables, _ Options) reconcile.TableOptions[intent.VIPKey, intent.VIP] {
		return reconcile.TableOptions[intent.VIPKey, intent.VIP]{
			Hold: func(k intent.VIPKey, _ intent.VIP) bool { return t.holdVIPs(k.VNI) }, Await: t.awaitVIP,
			Gate:    func(k intent.VIPKey, _ intent.VIP) error { return t.renewed.gate(Of(t, intent.VIPs), k) },
			Behind:  untilWithdrawn(t, func(k intent.VIPKey, _ intent.VIP) intent.VNI { return k.VNI }),
			Observe: t.vipsChanged,
		}
	},
	onSet:    func(t *Tables, all map[intent.VIPKey]intent.VIP) { t.SetVIPs(all) },
	onUpdate: func(t *Tables, d wanted.Delta[intent.VIPKey, intent.VIP]) { t.UpdateVIPs(d.Set, d.Delete) },
	excused: func(w expected) func(intent.VIPKey, intent.VIP) bool {
		return func(k intent.VIPKey, _ intent.VIP) bool { return w.vrfs()[k.VNI] }
	},
}

var routes = table[*Tables, intent.RouteKey, intent.Route]{
	of: intent.Routes, from: fromOVN | fromBGP, paths: eBPF,
	options: func(t *Tables, opts Options) reconcile.TableOptions[intent.RouteKey, intent.Route] {
		return reconcile.TableOptions[intent.RouteKey, intent.Route]{
			Hold: t.holdRoute(intent.PathEBPF), Behind: t.behindRoute, Observe: t.ebpfRoutesChanged(opts.Routed),
		}
	},
	onSet:    func(t *Tables, all map[intent.RouteKey]intent.Route) { t.SetRoutes(all) },
	onUpdate: func(t *Tables, d wanted.Delta[intent.RouteKey, intent.Route]) { t.UpdateRoutes(d.Set, d.Delete) },
	excused:  func(w expected) func(intent.RouteKey, intent.Route) bool { return w.route },
}

var underlayDevices = table[*Tables, string, intent.UnderlayDevice]{
	of: intent.UnderlayDevices, from: fromOVN, apart: true,
	options: func(t *Tables, _ Options) reconcile.TableOptions[string, intent.UnderlayDevice] {
		return reconcile.TableOptions[string, intent.UnderlayDevice]{
			Behind:  inVRF(t, func(string, intent.UnderlayDevice) intent.VNI { return intent.DefaultVRF }),
			Observe: t.underlayDevicesChanged,
		}
	},
	// A device that is not there is an object of its own, and may be one that other nodes have.
	excused: func(expected) func(string, intent.UnderlayDevice) bool {
		return func(string, intent.UnderlayDevice) bool { return true }
	},
}

var steeringFlows = table[*Tables, intent.SteeringKey, intent.Steering]{
	of: intent.SteeringFlows, from: fromOVN,
	options: func(t *Tables, opts Options) reconcile.TableOptions[intent.SteeringKey, intent.Steering] {
		return reconcile.TableOptions[intent.SteeringKey, intent.Steering]{
			Hold: t.holdFlow, Linger: t.lingerFrom, Early: isEarly, Await: t.awaitFlow,
			Behind:  atGateway[intent.SteeringKey, intent.Steering](t, func(k intent.SteeringKey) intent.GatewayKey { return k.Gateway }),
			Observe: alsoWaits(newWaits(opts.Status, flowGateway, t.gatewayWaits), t.steeringChanged),
		}
	},
	excused: func(w expected) func(intent.SteeringKey, intent.Steering) bool {
		return func(k intent.SteeringKey, _ intent.Steering) bool { return w.idle(k.Gateway) }
	},
}

var policies = table[*Tables, intent.VNI, intent.VRFPolicy]{
	of: intent.Policies, from: fromOVN,
	options: func(t *Tables, _ Options) reconcile.TableOptions[intent.VNI, intent.VRFPolicy] {
		return reconcile.TableOptions[intent.VNI, intent.VRFPolicy]{
			Hold:    func(vni intent.VNI, _ intent.VRFPolicy) bool { return !t.src.OVN() || t.moves.vrf(vni) },
			Await:   func(vni intent.VNI, _, _ intent.VRFPolicy, _ bool) error { return t.awaitIndex(vni) },
			Behind:  untilWithdrawn(t, func(vni intent.VNI, _ intent.VRFPolicy) intent.VNI { return vni }),
			Observe: t.policiesChanged,
		}
	},
}

var announcements = table[*Tables, intent.RouteKey, intent.Announcement]{
	of: intent.Announcements, from: fromOVN,
	options: func(t *Tables, opts Options) reconcile.TableOptions[intent.RouteKey, intent.Announcement] {
		return reconcile.TableOptions[intent.RouteKey, intent.Announcement]{
			Hold: t.holdAnnouncement, Gate: gates{t, false}.announcement, Behind: t.behindAnnouncement, Observe: opts.Announced,
		}
	},
	excused: func(w expected) func(intent.RouteKey, intent.Announcement) bool {
		return func(_ intent.RouteKey, a intent.Announcement) bool { return w.missing(a.Gateway) }
	},
}

var learnedRoutes = table[*Tables, intent.LearnedKey, intent.LearnedRoute]{
	of: intent.LearnedRoutes, from: fromOVN | fromBGP,
	options: func(t *Tables, _ Options) reconcile.TableOptions[intent.LearnedKey, intent.LearnedRoute] {
		return reconcile.TableOptions[intent.LearnedKey, intent.LearnedRoute]{Hold: t.holdLearned, Behind: t.behindLearned}
	},
}
