package tables

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// wantPath wants the tenant of the bench on a path, with a local and a remote route.
func (b *bench) wantPath(p intent.Path) {
	b.Pipeline.Update(func() {
		Of(b, intent.Bridges).Set(map[intent.BridgeKey]intent.Bridge{"br-ex": {Name: "br-ex"}})
		v := intent.VRF{VNI: 1001, Index: 1, Path: p}
		vni := intent.VNI(0)
		if p == intent.PathKernel {
			vni = 1001
			Of(b, intent.KernelVRFs).Set(map[intent.VNI]intent.KernelVRF{1001: {VNI: 1001, Index: 1}})
			Of(b, intent.KernelGateways).Set(map[intent.GatewayKey]intent.KernelGateway{gw: {Key: gw, VNI: 1001}})
		} else {
			Of(b, intent.KernelVRFs).Set(nil)
			Of(b, intent.KernelGateways).Set(nil)
		}
		b.SetVRFs(map[intent.VNI]intent.VRF{1001: v})
		Of(b, intent.Gateways).Set(map[intent.GatewayKey]intent.Gateway{gw: {Key: gw, VNI: 1001}})
		Of(b, intent.ServedNextHops).Set(nil)
		Of(b, intent.VTEPs).Set(nil)
		b.SetRoutes(map[intent.RouteKey]intent.Route{
			host: {Key: host, Kind: intent.RouteLocal, Gateway: gw}, other: {Key: other, Kind: intent.RouteRemote}})
		Of(b, intent.SteeringFlows).Set(map[intent.SteeringKey]intent.Steering{into: {Key: into, Path: p, VNI: vni}, back: {Key: back, Path: p, VNI: vni}})
		Of(b, intent.Policies).Set(map[intent.VNI]intent.VRFPolicy{1001: {VNI: 1001}})
		Of(b, intent.Announcements).Set(map[intent.RouteKey]intent.Announcement{host: {Key: host, Gateway: gw}})
	})
}

// broken tells why packets of the tenant would be lost now, either way.
func (b *bench) broken(routes ...intent.RouteKey) error {
	complete := func(p intent.Path) error {
		rows := b.routesThere.rows
		if p == intent.PathKernel {
			rows = b.kernelRoutes.rows
			if _, ok := b.kernelVRFs.rows[1001]; !ok {
				return errors.New("no devices")
			}
			if _, ok := b.kernelGateways.rows[gw]; !ok {
				return errors.New("no pair")
			}
		}
		for _, k := range routes {
			if _, ok := rows[k]; !ok {
				return fmt.Errorf("no route %s", k)
			}
		}
		return nil
	}
	v := b.vrfs.rows[1001]
	if err := complete(v.Path); err != nil {
		return fmt.Errorf("what comes from the fabric goes to path %s: %w", v.Path, err)
	}
	if v.Path == intent.PathKernel && b.flows.rows[into].Path != intent.PathKernel {
		return errors.New("the kernel path has no flow into OVN")
	}
	if err := complete(b.flows.rows[back].Path); err != nil {
		return fmt.Errorf("what comes from OVN goes to path %s: %w", b.flows.rows[back].Path, err)
	}
	if _, ok := b.announced.rows[host]; ok {
		b.doubts = false
	} else if b.doubts = b.doubts || b.unknown(); !b.doubts {
		return errors.New("withdrawn")
	}
	return nil
}

// unknown tells whether it is not known of some row what there is.
func (b *bench) unknown() bool {
	return slices.ContainsFunc(b.Pipeline.Stages(), func(s reconcile.Stage) bool { return s.Stats().Unknown > 0 })
}

// watch has every write of any driver checked.
func (b *bench) watch(t *testing.T, check func()) {
	t.Helper()
	for _, after := range []*func(){&b.vrfs.after, &b.kernelVRFs.after, &b.kernelGateways.after, &b.kernelRoutes.after,
		&b.routesThere.after, &b.flows.after, &b.gateways.after, &b.announced.after} {
		*after = check
	}
}

func (b *bench) on(p intent.Path) bool {
	kernel := p == intent.PathKernel
	return b.vrfs.rows[1001].Path == p && b.flows.rows[into].Path == p && b.flows.rows[back].Path == p &&
		(len(b.kernelRoutes.rows) == 2) == kernel && (len(b.routesThere.rows) == 0) == kernel &&
		(len(b.kernelVRFs.rows) == 1) == kernel && (len(b.kernelGateways.rows) == 1) == kernel
}

// A change of path loses no packet, whatever fails meanwhile and for how long, and
// leaves nothing of the other path behind. Its routes are withdrawn only while it is not known
// what a call that failed has left, and until they are announced again.
func TestChangeOfPathIsMakeBeforeBreak(t *testing.T) {
	for seed := range 300 {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		b := newBench()
		path := intent.Path(r.IntN(2))
		b.wantPath(path)
		b.passes(t)
		if !b.on(path) {
			t.Fatalf("seed %d: not on path %s at first: %v", seed, path, b.journal)
		}
		b.journal = nil
		b.watch(t, func() {
			if err := b.broken(host, other); err != nil {
				t.Fatalf("seed %d: to path %s: %v; %v", seed, path, err, b.journal)
			}
		})
		for range 1 + r.IntN(4) {
			path = intent.Path(r.IntN(2))
			b.failSome(r)
			b.wantPath(path)
			for range r.IntN(4) {
				b.Pipeline.Pass(t.Context())
			}
			if r.IntN(4) == 0 {
				b.Pipeline.RelistAll()
			}
		}
		b.failSome(nil)
		b.touchAll()
		for range 6 {
			b.Pipeline.Pass(t.Context())
		}
		if !b.on(path) {
			t.Fatalf("seed %d: not on path %s at the end: %v", seed, path, b.journal)
		}
	}
}

func (b *bench) failSome(r *rand.Rand) {
	fail := func(to *error) {
		*to = nil
		if r != nil && r.IntN(6) == 0 {
			*to = reconcile.Unchanged(errors.New("no"))
			if r.IntN(2) == 0 {
				*to = errors.New("who knows")
			}
		}
	}
	fail(&b.kernelVRFs.fail)
	fail(&b.kernelGateways.fail)
	fail(&b.kernelRoutes.fail)
	fail(&b.vrfs.fail)
	fail(&b.routesThere.fail)
	fail(&b.flows.fail)
}

func (b *bench) touchAll() {
	b.Pipeline.Update(func() {
		Of(b, intent.KernelVRFs).Touch(1001)
		Of(b, intent.VRFs).Touch(1001)
		Of(b, intent.KernelGateways).Touch(gw)
		Of(b, intent.KernelRoutes).Touch(host, other)
		Of(b, intent.Routes).Touch(host, other)
		Of(b, intent.SteeringFlows).Touch(into, back)
	})
}

// A process that starts in the middle of a change, or is told of one when it
// starts, finds only what the drivers list.
func TestChangeOfPathGoesOnAfterARestart(t *testing.T) {
	for _, to := range []intent.Path{intent.PathKernel, intent.PathEBPF} {
		for passes := range 4 {
			from := 1 - to
			b := newBench()
			b.wantPath(from)
			b.passes(t)
			b.wantPath(to)
			for range passes {
				b.Pipeline.Pass(t.Context())
			}
			next := newBench()
			next.vrfs.rows, next.flows.rows, next.gateways.rows, next.routesThere.rows = b.vrfs.rows, b.flows.rows, b.gateways.rows, b.routesThere.rows
			next.kernelVRFs.rows, next.kernelGateways.rows, next.kernelRoutes.rows = b.kernelVRFs.rows, b.kernelGateways.rows, b.kernelRoutes.rows
			next.bridges.rows, next.policies.rows, next.announced.rows = b.bridges.rows, b.policies.rows, b.announced.rows
			next.wantPath(to)
			next.watch(t, func() {
				if err := next.broken(host, other); err != nil {
					t.Fatalf("to path %s after %d passes: %v; %v", to, passes, err, next.journal)
				}
			})
			next.passes(t)
			next.passes(t)
			if !next.on(to) {
				t.Errorf("to path %s after %d passes: %v", to, passes, next.journal)
			}
		}
	}
}

// While the new path cannot be made, what changes is followed on the old one.
func TestRoutesFollowWhileAChangeOfPathWaits(t *testing.T) {
	b := newBench()
	b.wantPath(intent.PathEBPF)
	b.passes(t)
	b.kernelVRFs.fail = fmt.Errorf("no such kind of device: %w", reconcile.ErrForeign)
	b.wantPath(intent.PathKernel)
	b.passes(t)
	third := intent.NewHostKey(1001, netip.MustParseAddr("10.0.0.3"))
	b.Pipeline.Update(func() {
		b.UpdateRoutes(map[intent.RouteKey]intent.Route{third: {Key: third, Kind: intent.RouteRemote}}, []intent.RouteKey{other})
	})
	b.passes(t)
	if _, ok := b.routesThere.rows[third]; !ok {
		t.Error("a new route is not on the path that forwards")
	}
	if _, ok := b.kernelRoutes.rows[other]; ok {
		t.Error("a route that is gone is on the path to come")
	}
	if err := b.broken(host, third); err != nil {
		t.Error(err)
	}
	if _, err := Of(b, intent.VRFs).State(1001); !errors.Is(err, reconcile.ErrNotReady) {
		t.Errorf("the VRF's row: %v", err)
	}
	b.wantPath(intent.PathEBPF) // somebody changed his mind
	b.passes(t)
	if !b.on(intent.PathEBPF) {
		t.Errorf("not as before: %v", b.journal)
	}
}

func TestNothingOfAVRFStaysOnTheKernelPath(t *testing.T) {
	b := newBench()
	b.wantPath(intent.PathKernel)
	b.passes(t)
	want := []string{"+bridge", "+kernel-vrf", "+kernel-gateway", "+kernel-route", "+kernel-route", "+vrf", "+gateway", "+flow", "+flow", "+policy", "+announcement"}
	if !slices.Equal(b.journal, want) {
		t.Fatalf("added %v", b.journal)
	}
	b.journal = nil
	b.want(false)
	b.passes(t)
	slices.Reverse(want)
	for i := range want {
		want[i] = "-" + want[i][1:]
	}
	if !slices.Equal(b.journal, want) {
		t.Fatalf("removed %v", b.journal)
	}
}

// A VRF stays on its path as long as none may be changed, as before the neighbours
// have sent the routes of the new one.
func TestChangeOfPathWaitsForItsTurn(t *testing.T) {
	for _, to := range []intent.Path{intent.PathKernel, intent.PathEBPF} {
		from := intent.PathKernel - to
		b := newBench()
		var why error
		b.src.Turn = func() error { return why }
		b.Tables = New(b.drivers, b.src, Options{Status: b.reg})
		b.wantPath(from)
		b.passes(t)
		why = errors.New("not yet")
		b.wantPath(to)
		b.passes(t)
		if err := b.broken(host, other); err != nil || b.vrfs.rows[1001].Path != from {
			t.Fatalf("to path %s: on path %s, %v", to, b.vrfs.rows[1001].Path, err)
		}
		if now, carries := b.Path(1001); now != from || !carries || !b.Steered(into) || !b.Steered(back) {
			t.Errorf("to path %s: path %s carries: %v; the flows are there: %v, %v", to, now, carries, b.Steered(into), b.Steered(back))
		}
		if b.Steered(intent.SteeringKey{Gateway: gw, Kind: intent.SteerSource, Prefix: netip.MustParsePrefix("192.0.2.0/24")}) {
			t.Error("a flow that nothing asks for is there")
		}
		why = nil
		b.Pipeline.Update(b.TurnCame)
		b.passes(t)
		if !b.on(to) {
			t.Errorf("not on path %s: %v", to, b.journal)
		}
	}
}
