package tables

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// gates tell whether what a route needs is in place.
type gates struct {
	*Tables
	// rewritten: a row that is being rewritten counts as in place.
	rewritten bool
}

// inPlace tells whether a wanted row is in place.
func inPlace[K, V comparable](g gates, t *reconcile.Table[K, V], k K) bool {
	return t.ProgrammedLocked(k) || rewritten(g, t, k)
}

func rewritten[K, V comparable](g gates, t *reconcile.Table[K, V], k K) bool {
	_, yes := t.RewrittenLocked(k)
	return g.rewritten && yes
}

// there tells whether some row is there, wanted or not.
func there[K, V comparable](g gates, t *reconcile.Table[K, V], k K) bool {
	_, yes := t.ActualLocked(k)
	return yes || rewritten(g, t, k)
}

func (g gates) flow(k intent.SteeringKey) bool {
	return g.flowInPlace(k) || rewritten(g, Of(g, intent.SteeringFlows), k)
}

// path is that of vrfPath.
func (g gates) path(vni intent.VNI) (p intent.Path, ok bool) {
	if p, ok = g.vrfPath(vni); ok || !g.rewritten {
		return p, ok
	}
	was, ok := Of(g, intent.VRFs).RewrittenLocked(vni)
	return was.Path, ok
}

// announcement lets a route be announced once packets for it would arrive, and
// their answers come back: the whole way from the fabric into OVN and back is
// programmed.
func (g gates) announcement(k intent.RouteKey, a intent.Announcement) error {
	if g.src.Fabric != nil {
		if err := g.src.Fabric(k.VNI); err != nil {
			return err
		}
	}
	toOVN := intent.SteeringKey{Gateway: a.Gateway, Kind: intent.SteerToOVN}
	back, steered := sourceFlow(k.VNI, a.Gateway, k.Prefix, Of(g, intent.SteeringFlows).WantedLocked)
	path, carries := g.path(k.VNI)
	switch {
	case !inPlace(g, Of(g, intent.Bridges), a.Gateway.Bridge):
		return fmt.Errorf("%w for the veth pair of bridge %s", reconcile.ErrNotReady, a.Gateway.Bridge)
	case !carries:
		return fmt.Errorf("%w for VRF %s", reconcile.ErrNotReady, k.VNI)
	case !inPlace(g, Of(g, intent.Gateways), a.Gateway):
		return fmt.Errorf("%w for gateway %s", reconcile.ErrNotReady, a.Gateway)
	case !g.flow(toOVN):
		return fmt.Errorf("%w for flow %s", reconcile.ErrNotReady, toOVN)
	case !steered || !g.flow(back):
		return fmt.Errorf("%w for flow %s", reconcile.ErrNotReady, back)
	case k.VNI == intent.DefaultVRF:
		return g.defaultVRF(k)
	case !inPlace(g, Of(g, intent.Policies), k.VNI):
		return fmt.Errorf("%w for the route targets of VRF %s", reconcile.ErrNotReady, k.VNI)
	case path == intent.PathKernel:
		return g.kernel(k, a)
	case !inPlace(g, Of(g, intent.Routes), k):
		return fmt.Errorf("%w for route %s", reconcile.ErrNotReady, k)
	case a.VIPs:
		return g.vips(k)
	}
	return nil
}

// defaultVRF is the default VRF's part of the gate.
func (g gates) defaultVRF(k intent.RouteKey) error {
	entered := false
	Of(g, intent.UnderlayDevices).EachLocked(func(name string, _ intent.UnderlayDevice) {
		entered = entered || inPlace(g, Of(g, intent.UnderlayDevices), name)
	})
	switch {
	case !entered:
		return fmt.Errorf("%w for a device of the underlay", reconcile.ErrNotReady)
	case !inPlace(g, Of(g, intent.Routes), k):
		return fmt.Errorf("%w for route %s", reconcile.ErrNotReady, k)
	}
	return nil
}

// kernel is the kernel path's part of the gate. Rows that are to go with a
// change of path count as long as they are there.
func (g gates) kernel(k intent.RouteKey, a intent.Announcement) error {
	switch {
	case !there(g, Of(g, intent.KernelVRFs), k.VNI):
		return fmt.Errorf("%w for the devices of VRF %s", reconcile.ErrNotReady, k.VNI)
	case !there(g, Of(g, intent.KernelGateways), a.Gateway):
		return fmt.Errorf("%w for gateway %s on the kernel path", reconcile.ErrNotReady, a.Gateway)
	case !inPlace(g, Of(g, intent.KernelRoutes), k):
		return fmt.Errorf("%w for route %s on the kernel path", reconcile.ErrNotReady, k)
	}
	return nil
}

// SourceFlow is the flow that brings packets of a VRF's source from OVN to this
// node: the longest that covers it. If none is wanted, it is the one that would.
func (t *Tables) SourceFlow(vni intent.VNI, g intent.GatewayKey, source netip.Prefix) (flow intent.SteeringKey, wanted bool) {
	return sourceFlow(vni, g, source, func(k intent.SteeringKey) bool { _, ok := Of(t, intent.SteeringFlows).Wanted(k); return ok })
}

func sourceFlow(vni intent.VNI, g intent.GatewayKey, source netip.Prefix, wanted func(intent.SteeringKey) bool) (intent.SteeringKey, bool) {
	kind := intent.SteerSource
	if vni == intent.DefaultVRF {
		kind = intent.SteerRouted
	}
	at := func(p netip.Prefix) (intent.SteeringKey, bool) {
		k := intent.SteeringKey{Gateway: g, Kind: kind, Prefix: p}
		return k, wanted(k)
	}
	if k, found := intent.LongestMatch(source, at); found {
		return k, true
	}
	return at(source)
}

// The functions below open and close the gates of announcements when something
// that they depend on was programmed, removed or failed.

func (t *Tables) bridgesChanged(events []reconcile.Event[intent.BridgeKey]) {
	hit := keysOf(events)
	// Rows that name a bridge wait for its devices, and a device that was made
	// anew has another index and port number: what is there is read back.
	t.Pipeline.Update(func() {
		Of(t, intent.Gateways).Relist()
		Of(t, intent.SteeringFlows).Relist()
		Of(t, intent.Gateways).TouchWhere(func(k intent.GatewayKey, _ intent.Gateway) bool { return hit[k.Bridge] })
		Of(t, intent.SteeringFlows).TouchWhere(func(k intent.SteeringKey, _ intent.Steering) bool { return hit[k.Gateway.Bridge] })
		Of(t, intent.Announcements).TouchWhere(func(_ intent.RouteKey, a intent.Announcement) bool { return hit[a.Gateway.Bridge] })
	})
}

// FabricChanged has all announcements ask Sources.Fabric again. It is to be called
// inside an update of the pipeline.
func (t *Tables) FabricChanged() {
	Of(t, intent.Announcements).TouchWhere(func(intent.RouteKey, intent.Announcement) bool { return true })
}

// underlayDevicesChanged opens the default VRF's gates with the first device, and
// closes them with the last.
func (t *Tables) underlayDevicesChanged([]reconcile.Event[string]) {
	t.touchVRFs(map[intent.VNI]bool{intent.DefaultVRF: true})
}

func (t *Tables) policiesChanged(events []reconcile.Event[intent.VNI]) { t.touchVRFs(keysOf(events)) }

func (t *Tables) touchVRFs(hit map[intent.VNI]bool) {
	t.Pipeline.Update(func() {
		Of(t, intent.Announcements).TouchWhere(func(k intent.RouteKey, _ intent.Announcement) bool { return hit[k.VNI] })
	})
}

// kernelVRFsChanged has the VRFs' rows read back: a device that was made anew has
// another index.
func (t *Tables) kernelVRFsChanged(events []reconcile.Event[intent.VNI]) {
	hit := keysOf(events)
	t.Pipeline.Update(func() {
		Of(t, intent.VRFs).Relist()
		for vni := range hit {
			Of(t, intent.VRFs).Touch(vni)
		}
		Of(t, intent.KernelGateways).TouchWhere(func(_ intent.GatewayKey, g intent.KernelGateway) bool { return hit[g.VNI] })
	})
	t.touchVRFs(hit)
}

func (t *Tables) kernelGatewaysChanged(events []reconcile.Event[intent.GatewayKey]) {
	hit := keysOf(events)
	t.Pipeline.Update(func() {
		for k := range hit {
			if g, ok := Of(t, intent.KernelGateways).LookupLocked(k); ok {
				t.changing(g.VNI)
			}
		}
		Of(t, intent.SteeringFlows).TouchWhere(func(k intent.SteeringKey, s intent.Steering) bool {
			return s.Path == intent.PathKernel && hit[k.Gateway]
		})
		Of(t, intent.Announcements).TouchWhere(func(_ intent.RouteKey, a intent.Announcement) bool { return hit[a.Gateway] })
	})
}

func (t *Tables) vrfsChanged(events []reconcile.Event[intent.VNI]) {
	hit, changed := keysOf(events), map[intent.VNI]bool{}
	t.Pipeline.Update(func() {
		for _, e := range events {
			if e.Programmed && t.carriedOn(e.Key) == onEBPF|onKernel {
				changed[e.Key] = true
			}
		}
		t.repath(hit)
		if len(changed) > 0 {
			Of(t, intent.SteeringFlows).TouchWhere(func(k intent.SteeringKey, _ intent.Steering) bool {
				g, ok := Of(t, intent.Gateways).LookupLocked(k.Gateway)
				return ok && changed[g.VNI]
			})
		}
	})
	t.touchVRFs(hit)
}

func (t *Tables) gatewaysChanged(events []reconcile.Event[intent.GatewayKey]) {
	hit := keysOf(events)
	t.Pipeline.Update(func() {
		for k := range hit {
			if g, ok := Of(t, intent.Gateways).LookupLocked(k); ok {
				t.changing(g.VNI)
			}
		}
		Of(t, intent.Announcements).TouchWhere(func(_ intent.RouteKey, a intent.Announcement) bool { return hit[a.Gateway] })
	})
}

func (t *Tables) steeringChanged(events []reconcile.Event[intent.SteeringKey]) {
	t.fromChanged(events)
	hit, made := map[intent.GatewayKey]bool{}, map[intent.GatewayKey]bool{}
	for _, e := range events {
		if e.Key.Kind == intent.SteerToOVN || e.Key.Kind == intent.SteerSource || e.Key.Kind == intent.SteerRouted {
			hit[e.Key.Gateway] = true
			made[e.Key.Gateway] = made[e.Key.Gateway] || e.Programmed
		}
	}
	if len(hit) == 0 {
		return
	}
	t.Pipeline.Update(func() {
		vnis := map[intent.VNI]bool{}
		for k := range hit {
			if g, ok := Of(t, intent.Gateways).LookupLocked(k); ok && made[k] && t.carriedOn(g.VNI) == onEBPF|onKernel {
				vnis[g.VNI] = true
				t.changing(g.VNI)
			}
		}
		t.repath(vnis)
		Of(t, intent.Announcements).TouchWhere(func(_ intent.RouteKey, a intent.Announcement) bool { return hit[a.Gateway] })
	})
}

// ebpfRoutesChanged also tells who asked for it.
func (t *Tables) ebpfRoutesChanged(told func([]reconcile.Event[intent.RouteKey])) func([]reconcile.Event[intent.RouteKey]) {
	return func(events []reconcile.Event[intent.RouteKey]) {
		if told != nil {
			told(events)
		}
		t.routesChanged(events)
	}
}

func (t *Tables) routesChanged(events []reconcile.Event[intent.RouteKey]) {
	t.Pipeline.Update(func() {
		for _, e := range events {
			if e.Programmed {
				t.changing(e.Key.VNI)
			}
			if Of(t, intent.Announcements).WantedLocked(e.Key) {
				Of(t, intent.Announcements).Touch(e.Key)
			}
		}
	})
}

func keysOf[K comparable](events []reconcile.Event[K]) map[K]bool {
	keys := make(map[K]bool, len(events))
	for _, e := range events {
		keys[e.Key] = true
	}
	return keys
}

// ReasonOf is the word for a driver's error in status and metrics.
func ReasonOf(err error) string {
	switch {
	case errors.Is(err, reconcile.ErrForeign):
		return reason.Foreign
	case errors.Is(err, syscall.E2BIG), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.ENOMEM):
		return reason.Full
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		return reason.Permission
	}
	return reason.Failed
}
