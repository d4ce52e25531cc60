package tables

import (
	"fmt"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// A VRF changes its path make-before-break: rows of the new path first, and the
// flows into OVN, then the VRF's row, which turns what comes from the fabric, then
// the flows that bring packets from OVN, and last the old path's rows go. Until
// then its routes are rows of both paths, so that what changes meanwhile, however
// long the new path takes, changes on the one that forwards.

// carried are the tables of routes that have those of a VRF.
type carried uint8

const (
	onEBPF carried = 1 << iota
	onKernel
)

func on(p intent.Path) carried {
	if p == intent.PathKernel {
		return onKernel
	}
	return onEBPF
}

// SetVRFs replaces the wanted VRFs. Call it inside an update of the pipeline.
func (t *Tables) SetVRFs(all map[intent.VNI]intent.VRF) {
	Of(t, intent.VRFs).Set(all)
	t.repath(keys(all))
}

// UpdateVRFs changes the wanted VRFs. Call it inside an update of the pipeline.
func (t *Tables) UpdateVRFs(set map[intent.VNI]intent.VRF, gone []intent.VNI) {
	Of(t, intent.VRFs).Update(set, gone)
	t.repath(keys(set))
}

// SetRoutes replaces the wanted routes of both paths, after SetVRFs. Call it inside
// an update of the pipeline.
func (t *Tables) SetRoutes(all map[intent.RouteKey]intent.Route) {
	of := func(c carried) map[intent.RouteKey]intent.Route {
		out := make(map[intent.RouteKey]intent.Route)
		for k, r := range all {
			if t.carriedOn(k.VNI)&c != 0 {
				out[k] = r
			}
		}
		return out
	}
	Of(t, intent.Routes).Set(of(onEBPF))
	Of(t, intent.KernelRoutes).Set(of(onKernel))
}

// UpdateRoutes changes the wanted routes of both paths. Call it inside an update of
// the pipeline.
func (t *Tables) UpdateRoutes(set map[intent.RouteKey]intent.Route, gone []intent.RouteKey) {
	Of(t, intent.Routes).Update(nil, gone)
	Of(t, intent.KernelRoutes).Update(nil, gone)
	if len(t.paths) == 0 {
		Of(t, intent.Routes).Update(set, nil)
		return
	}
	one := make(map[intent.RouteKey]intent.Route, 1)
	for k, r := range set {
		one[k] = r
		if t.carriedOn(k.VNI)&onEBPF != 0 {
			Of(t, intent.Routes).Update(one, nil)
		}
		if t.carriedOn(k.VNI)&onKernel != 0 {
			Of(t, intent.KernelRoutes).Update(one, nil)
		}
		delete(one, k)
	}
}

func (t *Tables) carriedOn(vni intent.VNI) carried {
	if c, ok := t.paths[vni]; ok {
		return c
	}
	return onEBPF
}

// repath finds out which tables have the routes of the VRFs, and puts them there.
// What BGP shows of a VRF outlives it for a moment, and stays where it is.
func (t *Tables) repath(vnis map[intent.VNI]bool) {
	was := map[intent.VNI]carried{}
	for vni := range vnis {
		v, ok := Of(t, intent.VRFs).LookupLocked(vni)
		if !ok {
			continue
		}
		next := on(v.Path)
		if Of(t, intent.VRFs).MayBeLocked(vni, func(actual intent.VRF) bool { return actual.VNI == vni }) && !t.changedOver(v) {
			next = onEBPF | onKernel
		}
		if old := t.carriedOn(vni); old != next {
			was[vni], t.paths[vni] = old, next
		}
		if next == onEBPF {
			delete(t.paths, vni)
		}
	}
	if len(was) > 0 {
		t.moveRoutes(was)
	}
}

// moveRoutes follows paths that were others.
func (t *Tables) moveRoutes(was map[intent.VNI]carried) {
	move := func(from, to *reconcile.Table[intent.RouteKey, intent.Route], out, in carried) {
		put, gone := map[intent.RouteKey]intent.Route{}, []intent.RouteKey{}
		from.EachLocked(func(k intent.RouteKey, r intent.Route) {
			old, moves := was[k.VNI]
			if !moves {
				return
			}
			now := t.carriedOn(k.VNI)
			if now&in != 0 && old&in == 0 {
				put[k] = r
			}
			if now&out == 0 {
				gone = append(gone, k)
			}
		})
		to.Update(put, nil)
		from.Update(nil, gone)
	}
	move(Of(t, intent.Routes), Of(t, intent.KernelRoutes), onEBPF, onKernel)
	move(Of(t, intent.KernelRoutes), Of(t, intent.Routes), onKernel, onEBPF)
}

// changedOver tells whether nothing forwards on a VRF's other path any more: of
// its row, and of its flows.
func (t *Tables) changedOver(v intent.VRF) bool {
	if !Of(t, intent.VRFs).KnownLocked() || !Of(t, intent.SteeringFlows).KnownLocked() {
		return false
	}
	if Of(t, intent.VRFs).MayBeLocked(v.VNI, func(actual intent.VRF) bool { return actual.VNI == v.VNI && actual.Path != v.Path }) {
		return false
	}
	_, other := Of(t, intent.SteeringFlows).UnplacedLocked(func(k intent.SteeringKey, w intent.Steering) bool {
		g, ok := Of(t, intent.Gateways).LookupLocked(k.Gateway)
		if !ok || g.VNI != v.VNI {
			return false
		}
		return Of(t, intent.SteeringFlows).MayBeLocked(k, func(actual intent.Steering) bool { return actual.Key == k && actual.Path != w.Path })
	})
	return !other
}

// onOtherPath tells whether a VRF that is to be on another path than this one still
// needs this one's rows.
func (t *Tables) onOtherPath(vni intent.VNI, p intent.Path) bool {
	v, wanted := Of(t, intent.VRFs).LookupLocked(vni)
	return wanted && v.Path != p && !t.changedOver(v)
}

// awaitVRF has a VRF's row wait for the rows of its new path.
func (t *Tables) awaitVRF(vni intent.VNI, want, actual intent.VRF, there bool) error {
	if err := t.awaitIndex(vni); err != nil {
		return err
	}
	if !there || actual.VNI != vni || actual.Path == want.Path {
		return nil
	}
	waits := func(what string) error {
		return fmt.Errorf("%w to change to path %s: %s", reconcile.ErrNotReady, want.Path, what)
	}
	if t.src.Turn != nil {
		if err := t.src.Turn(); err != nil {
			return waits(err.Error())
		}
	}
	routes := Of(t, intent.Routes)
	if want.Path == intent.PathKernel {
		routes = Of(t, intent.KernelRoutes)
		if !Of(t, intent.KernelVRFs).ProgrammedLocked(vni) {
			return waits("for the devices of the VRF")
		}
		if k, missing := Of(t, intent.KernelGateways).UnplacedLocked(func(_ intent.GatewayKey, g intent.KernelGateway) bool { return g.VNI == vni }); missing {
			return waits("for gateway " + k.String())
		}
		if k, missing := Of(t, intent.SteeringFlows).UnplacedLocked(func(k intent.SteeringKey, s intent.Steering) bool {
			return k.Kind == intent.SteerToOVN && s.VNI == vni
		}); missing {
			return waits("for flow " + k.String())
		}
	} else if k, missing := Of(t, intent.Gateways).UnplacedLocked(func(_ intent.GatewayKey, g intent.Gateway) bool { return g.VNI == vni }); missing {
		return waits("for gateway " + k.String())
	}
	if k, missing := routes.UnplacedLocked(func(k intent.RouteKey, _ intent.Route) bool { return k.VNI == vni }); missing {
		return waits("for route " + k.String())
	}
	return nil
}

// awaitIndex has a VRF, and its route targets, wait until its index is kept: one that a crash
// takes back would be another VRF's next, whose packets were counted as its own, and whose
// routes had its distinguisher.
func (t *Tables) awaitIndex(vni intent.VNI) error {
	if t.src.Kept == nil || t.src.Kept(vni) {
		return nil
	}
	return fmt.Errorf("%w for its index to be saved in the state directory", reconcile.ErrNotReady)
}

// IndicesKept has VRFs looked at again that wait for their index. Call it inside an update of
// the pipeline, after Sources.Kept has changed its answer.
func (t *Tables) IndicesKept() {
	Of(t, intent.VRFs).TouchWhere(func(vni intent.VNI, _ intent.VRF) bool { return !Of(t, intent.VRFs).ProgrammedLocked(vni) })
	Of(t, intent.Policies).TouchWhere(func(vni intent.VNI, _ intent.VRFPolicy) bool { return !Of(t, intent.Policies).ProgrammedLocked(vni) })
}

// awaitFlow has the flows of a VRF that changes its path wait for the VRF's row, but
// for the flow by which the kernel path enters OVN: packets take it at once.
func (t *Tables) awaitFlow(k intent.SteeringKey, want, actual intent.Steering, there bool) error {
	if !there || actual.Key != k || actual.Path == want.Path || k.Kind == intent.SteerToOVN && want.Path == intent.PathKernel {
		return nil
	}
	g, ok := Of(t, intent.Gateways).LookupLocked(k.Gateway)
	if !ok || Of(t, intent.VRFs).ProgrammedLocked(g.VNI) {
		return nil
	}
	return fmt.Errorf("%w for VRF %s to change its path", reconcile.ErrNotReady, g.VNI)
}

// changing has what waits for a change of path looked at again.
func (t *Tables) changing(vni intent.VNI) {
	if t.carriedOn(vni) == onEBPF|onKernel {
		Of(t, intent.VRFs).Touch(vni)
	}
}

// TurnCame has VRFs that are to change their path, or wait for the device of one,
// looked at again, after Sources.Turn has changed its answer. Call it inside an update
// of the pipeline.
func (t *Tables) TurnCame() {
	Of(t, intent.KernelVRFs).TouchWhere(func(vni intent.VNI, _ intent.KernelVRF) bool { return !Of(t, intent.KernelVRFs).ProgrammedLocked(vni) })
	Of(t, intent.KernelRoutes).TouchWhere(func(k intent.RouteKey, _ intent.Route) bool {
		v, ok := Of(t, intent.VRFs).LookupLocked(k.VNI)
		return ok && v.Path == intent.PathKernel && !Of(t, intent.KernelRoutes).ProgrammedLocked(k)
	})
	Of(t, intent.VRFs).TouchWhere(func(vni intent.VNI, _ intent.VRF) bool { return !Of(t, intent.VRFs).ProgrammedLocked(vni) })
}

// vrfPath is the path that carries a VRF's packets now, whichever is wanted. ok:
// apart from that its row is in place.
func (t *Tables) vrfPath(vni intent.VNI) (p intent.Path, ok bool) {
	want, wanted := Of(t, intent.VRFs).LookupLocked(vni)
	actual, there := Of(t, intent.VRFs).ActualLocked(vni)
	want.Path = actual.Path
	return actual.Path, wanted && there && Of(t, intent.VRFs).KnownLocked() && actual == want
}

// Path is the path that carries a VRF's packets now; false where that is not known.
func (t *Tables) Path(vni intent.VNI) (p intent.Path, ok bool) {
	t.Pipeline.View(func() { p, ok = t.vrfPath(vni) })
	return p, ok
}

// Steered tells whether a flow is there as its VRF's present path needs it, whichever
// path is wanted.
func (t *Tables) Steered(k intent.SteeringKey) (ok bool) {
	t.Pipeline.View(func() { ok = t.flowInPlace(k) })
	return ok
}

// flowInPlace tells whether a flow does what is wanted on either path.
func (t *Tables) flowInPlace(k intent.SteeringKey) bool {
	want, wanted := Of(t, intent.SteeringFlows).LookupLocked(k)
	actual, there := Of(t, intent.SteeringFlows).ActualLocked(k)
	if !wanted || !there || !Of(t, intent.SteeringFlows).KnownLocked() {
		return false
	}
	if want.Path != actual.Path {
		want.Path, want.VNI = actual.Path, actual.VNI
	}
	return actual == want
}

func keys[K comparable, V any](m map[K]V) map[K]bool {
	out := make(map[K]bool, len(m))
	for k := range m {
		out[k] = true
	}
	return out
}
