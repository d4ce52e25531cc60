package tables

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// rewriting is a row of the bench that is rewritten, and what else is done.
type rewriting struct {
	name   string
	path   intent.Path
	driver func(*bench) stoppable
	change func(*bench)
}

var rewritings = []rewriting{
	{"bridge that lacks something", intent.PathEBPF, func(b *bench) stoppable { return b.bridges }, func(b *bench) {
		Of(b, intent.Bridges).Update(map[intent.BridgeKey]intent.Bridge{"br-ex": {Name: "br-ex2"}}, nil)
	}},
	{"VRF", intent.PathEBPF, func(b *bench) stoppable { return b.vrfs }, func(b *bench) { b.UpdateVRFs(map[intent.VNI]intent.VRF{1001: {VNI: 1001, Index: 2}}, nil) }},
	{"gateway", intent.PathEBPF, func(b *bench) stoppable { return b.gateways }, func(b *bench) {
		Of(b, intent.Gateways).Update(map[intent.GatewayKey]intent.Gateway{gw: {Key: gw, VNI: 1001, MTU: 1400}}, nil)
	}},
	{"flow", intent.PathEBPF, func(b *bench) stoppable { return b.flows }, func(b *bench) {
		Of(b, intent.SteeringFlows).Update(map[intent.SteeringKey]intent.Steering{back: {Key: back, NextHopMAC: intent.MAC{2, 0, 0, 0, 0, 9}}}, nil)
	}},
	{"flow into OVN", intent.PathEBPF, func(b *bench) stoppable { return b.flows }, func(b *bench) {
		Of(b, intent.SteeringFlows).Update(map[intent.SteeringKey]intent.Steering{into: {Key: into, NextHopMAC: intent.MAC{2, 0, 0, 0, 0, 9}}}, nil)
	}},
	{"route targets", intent.PathEBPF, func(b *bench) stoppable { return b.policies }, changePolicy},
	{"route", intent.PathEBPF, func(b *bench) stoppable { return b.routesThere }, changeRoute},
	{"VRF of the kernel path", intent.PathKernel, func(b *bench) stoppable { return b.kernelVRFs }, func(b *bench) {
		Of(b, intent.KernelVRFs).Update(map[intent.VNI]intent.KernelVRF{1001: {VNI: 1001, Index: 2}}, nil)
	}},
	{"gateway of the kernel path", intent.PathKernel, func(b *bench) stoppable { return b.kernelGateways }, func(b *bench) {
		Of(b, intent.KernelGateways).Update(map[intent.GatewayKey]intent.KernelGateway{gw: {Key: gw, VNI: 1001, MTU: 1400}}, nil)
	}},
	{"route of the kernel path", intent.PathKernel, func(b *bench) stoppable { return b.kernelRoutes }, changeRoute},
}

func changePolicy(b *bench) {
	Of(b, intent.Policies).Update(map[intent.VNI]intent.VRFPolicy{1001: {VNI: 1001, Index: 2}}, nil)
}

func changeRoute(b *bench) {
	b.UpdateRoutes(map[intent.RouteKey]intent.Route{host: {Key: host, Kind: intent.RouteLocal, Gateway: gw, VIP: true}}, nil)
}

// A route stays announced while a row that it needs, and that was there, is being written: a
// write leaves no gap. When the call has failed it is not known what there is, and the route is
// withdrawn.
func TestRouteStaysWhileItsRowsAreRewritten(t *testing.T) {
	for _, r := range rewritings {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			b := newBench()
			b.wantPath(r.path)
			b.passes(t)
			goOn := b.staysAnnounced(t, r.driver(b), host, func() { r.change(b) })
			b.isWithdrawn(t, r.driver(b), host, goOn)
		})
	}
}

// So does one that waits for a turn of its driver, which is busy with other rows.
func TestRouteStaysWhileItsRowWaitsForATurn(t *testing.T) {
	b := newBench()
	b.want(true)
	b.passes(t)
	goOn := b.staysAnnounced(t, b.policies, host, func() { Of(b, intent.Policies).Update(map[intent.VNI]intent.VRFPolicy{1002: {VNI: 1002}}, nil) },
		func() { changePolicy(b) })
	b.isWithdrawn(t, b.policies, host, goOn)
}

// And so does the address of VIPs, and of the default VRF.
func TestAddressOfVIPsStaysWhileItsRowsAreRewritten(t *testing.T) {
	eachFamily(t, func(t *testing.T, of *balanced) {
		s := service{port: 80, backends: []int{0}}
		way := intent.NewHostKey(1001, of.backends[0])
		for name, r := range map[string]struct {
			driver func(*bench) stoppable
			change func(*balanced)
		}{
			"VIP": {func(b *bench) stoppable { return b.vips }, func(b *balanced) {
				v := b.vip(s)
				v.Affinity = 10
				b.UpdateVIPs(map[intent.VIPKey]intent.VIP{v.Key: v}, nil)
			}},
			"way to a backend": {func(b *bench) stoppable { return b.backendRoutes }, func(b *balanced) {
				Of(b, intent.BackendRoutes).Update(map[intent.RouteKey]intent.BackendRoute{way: {Key: way, Gateway: intent.GatewayKey{Bridge: "br-ex"}}}, nil)
			}},
			"flow of answers": {func(b *bench) stoppable { return b.flows }, func(b *balanced) {
				Of(b, intent.SteeringFlows).Update(map[intent.SteeringKey]intent.Steering{b.answer(0): {Key: b.answer(0), Localnet: "other"}}, nil)
			}},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				b := newBalanced(of.family)
				b.serve(t, s)
				goOn := b.staysAnnounced(t, r.driver(b.bench), b.address(), func() { r.change(b) })
				if name == "VIP" { // OVN balances one that is refused
					goOn()
					return
				}
				b.isWithdrawn(t, r.driver(b.bench), b.address(), goOn)
			})
		}
	})
}

// What is lost beside a row that is rewritten has a route withdrawn at once.
func TestRouteIsWithdrawnBesideARowThatIsRewritten(t *testing.T) {
	b := newBench()
	var lost error
	b.src.Fabric = func(intent.VNI) error { return lost }
	b.Tables = New(b.drivers, b.src, Options{Status: b.reg})
	b.want(true)
	b.passes(t)
	goOn := b.policies.stop()
	b.Pipeline.Update(func() { changePolicy(b) })
	b.passes(t)
	lost = errors.New("the underlay is down")
	b.Pipeline.Update(b.FabricChanged)
	b.passes(t)
	if len(b.announced.rows) > 0 {
		t.Error("announced although packets of the fabric are lost")
	}
	goOn()
}

// staysAnnounced stops a driver, makes changes one after another, and has all announcements
// looked at. The driver is stopped until what is returned is called.
func (b *bench) staysAnnounced(t *testing.T, d stoppable, route intent.RouteKey, changes ...func()) (goOn func()) {
	t.Helper()
	if !b.announces(route) {
		t.Fatal("not announced at first")
	}
	goOn = d.stop()
	for _, change := range changes {
		b.Pipeline.Update(change)
		b.Pipeline.Pass(t.Context())
	}
	if !d.hangs() {
		t.Fatal("nothing hangs")
	}
	for range 2 {
		b.Pipeline.Update(b.FabricChanged)
		b.Pipeline.Pass(t.Context())
		if !b.announces(route) {
			t.Error("withdrawn while what it needs was being rewritten")
		}
	}
	return goOn
}

func (b *bench) announces(route intent.RouteKey) bool {
	rows, _ := b.announced.List(context.Background())
	_, yes := rows[route]
	return yes
}

// isWithdrawn has a stopped driver fail and go on.
func (b *bench) isWithdrawn(t *testing.T, d stoppable, route intent.RouteKey, goOn func()) {
	t.Helper()
	d.failWith(errors.New("cut off"))
	goOn()
	for deadline := time.Now().Add(20 * time.Second); b.announces(route); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("announced although it is not known what there is")
		}
		b.Pipeline.Update(b.FabricChanged)
		b.Pipeline.Pass(t.Context())
	}
}
