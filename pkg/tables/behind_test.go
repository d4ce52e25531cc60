package tables

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// stopped is a driver whose calls do not return while it is stopped.
type stopped[K, V comparable] struct {
	*mapDriver[K, V]
	gate atomic.Pointer[chan struct{}]
	hung atomic.Int32
}

func (d *stopped[K, V]) wait() {
	if c := d.gate.Load(); c != nil {
		d.hung.Add(1)
		<-*c
	}
}

func (d *stopped[K, V]) List(ctx context.Context) (map[K]V, error) {
	d.wait()
	return d.mapDriver.List(ctx)
}

func (d *stopped[K, V]) Apply(ctx context.Context, rows []reconcile.Row[K, V]) []error {
	d.wait()
	return d.mapDriver.Apply(ctx, rows)
}

func (d *stopped[K, V]) Delete(ctx context.Context, keys []K) []error {
	d.wait()
	return d.mapDriver.Delete(ctx, keys)
}

func (d *stopped[K, V]) stop() (goOn func()) {
	c := make(chan struct{})
	d.gate.Store(&c)
	return func() { d.gate.Store(nil); close(c) }
}

// While ovs-vswitchd is stopped, all that needs none of it goes on: withdrawals, imported
// routes that go, VTEPs that come, VIPs that lose a backend, ports of the same VRF and of
// others. What does need it waits, and nothing goes before what refers to it.
func TestStoppedSwitchDelaysNothingElse(t *testing.T) {
	b := newBench()
	flows := &stopped[intent.SteeringKey, intent.Steering]{mapDriver: b.flows}
	b.drivers.Steering = flows
	b.Tables = New(b.drivers, b.src, Options{Status: b.reg, Log: slog.New(slog.DiscardHandler)})
	blue := intent.GatewayKey{Bridge: "br-ex", MAC: intent.MAC{2, 0, 0, 0, 0, 2}}
	blueHost, more := intent.NewHostKey(1002, host.Prefix.Addr()), intent.NewHostKey(1002, netip.MustParseAddr("10.0.0.9"))
	far, near := netip.MustParseAddr("192.0.2.9"), netip.MustParseAddr("10.0.0.7")
	vip := intent.VIPKey{VNI: 1002, Addr: netip.MustParseAddr("10.0.0.100"), Protocol: intent.TCP, Port: 80}
	imported := intent.Route{Key: other, Kind: intent.RouteRemote}
	local := func(k intent.RouteKey, g intent.GatewayKey) intent.Route {
		return intent.Route{Key: k, Kind: intent.RouteLocal, Gateway: g}
	}
	served := func(backends ...netip.Addr) intent.VIP {
		v := intent.VIP{Key: vip, Slots: 251}
		var list []intent.Backend
		for _, a := range backends {
			list = append(list, intent.Backend{Addr: a, Port: 80, Weight: 1})
		}
		v.Backends = intent.NewBackendSet(list...)
		return v
	}
	b.want(true)
	b.Pipeline.Update(func() {
		b.UpdateVRFs(map[intent.VNI]intent.VRF{1002: {VNI: 1002, Index: 2}}, nil)
		b.Gateways.Update(map[intent.GatewayKey]intent.Gateway{blue: {Key: blue, VNI: 1002}}, nil)
		b.Policies.Update(map[intent.VNI]intent.VRFPolicy{1002: {VNI: 1002}}, nil)
		b.UpdateRoutes(map[intent.RouteKey]intent.Route{other: imported, blueHost: local(blueHost, blue)}, nil)
		intoBlue, back := into, back
		intoBlue.Gateway, back.Gateway = blue, blue
		b.Steering.Update(map[intent.SteeringKey]intent.Steering{intoBlue: {Key: intoBlue}, back: {Key: back}}, nil)
		b.Announcements.Update(map[intent.RouteKey]intent.Announcement{blueHost: {Key: blueHost, Gateway: blue}}, nil)
		b.SetVIPs(map[intent.VIPKey]intent.VIP{vip: served(near, far)})
		b.VTEPs.Set(nil)
		b.BackendRoutes.Set(nil)
		b.Served.Set(nil)
	})
	b.passes(t)
	if len(b.announced.rows) != 2 {
		t.Fatalf("announced %v", b.announced.rows)
	}
	goOn := flows.stop()
	b.journal = nil
	red := intent.SteeringKey{Gateway: gw, Kind: intent.SteerSource, Prefix: netip.MustParsePrefix("10.0.1.0/24")}
	began := time.Now()
	b.Pipeline.Update(func() {
		b.Steering.Update(map[intent.SteeringKey]intent.Steering{red: {Key: red}}, []intent.SteeringKey{back}) // of VRF 1001
		b.UpdateRoutes(map[intent.RouteKey]intent.Route{more: local(more, blue)}, []intent.RouteKey{other, host})
		b.Announcements.Update(map[intent.RouteKey]intent.Announcement{more: {Key: more, Gateway: blue}}, []intent.RouteKey{host})
		b.VTEPs.Update(map[netip.Addr]intent.VTEP{far: {Addr: far}}, nil)
		b.UpdateVIPs(map[intent.VIPKey]intent.VIP{vip: served(far)}, nil)
	})
	b.passes(t)
	t.Logf("4 passes beside a stopped driver took %s", time.Since(began))
	if flows.hung.Load() != 1 {
		t.Fatalf("%d calls of the stopped driver", flows.hung.Load())
	}
	if _, there := b.routesThere.rows[other]; there {
		t.Error("an imported route that is withdrawn is there")
	}
	if _, there := b.announced.rows[host]; there {
		t.Error("a route of the VRF whose flows wait is not withdrawn")
	}
	if _, there := b.routesThere.rows[host]; !there {
		t.Error("a local route went before the flow of its VRF that is to go")
	}
	if _, there := b.announced.rows[more]; !there {
		t.Error("a port of another VRF is not announced")
	}
	if v := b.vips.rows[vip]; v.Backends.Len() != 1 {
		t.Errorf("a backend that died is there: %v", v)
	}
	if ok, _ := b.VTEPs.State(far); !ok {
		t.Error("a new VTEP is not there")
	}
	goOn()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		b.Pipeline.Pass(t.Context())
		if _, there := b.routesThere.rows[host]; !there {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v is left", b.routesThere.rows)
		}
	}
	if i, j := slices.Index(b.journal, "-flow"), len(b.journal)-1; i < 0 || b.journal[j] != "-route" || i > j {
		t.Errorf("journal %v", b.journal)
	}
}

// A route whose flow is being written stays announced: a write leaves no gap. When the call has
// failed it is not known what there is, and the route is withdrawn.
func TestRouteStaysWhileItsFlowIsWritten(t *testing.T) {
	b := newBench()
	flows := &stopped[intent.SteeringKey, intent.Steering]{mapDriver: b.flows}
	b.drivers.Steering = flows
	b.Tables = New(b.drivers, b.src, Options{Status: b.reg, Log: slog.New(slog.DiscardHandler)})
	b.want(true)
	b.passes(t)
	goOn := flows.stop()
	b.Pipeline.Update(func() {
		b.Steering.Update(map[intent.SteeringKey]intent.Steering{back: {Key: back, NextHopMAC: intent.MAC{2, 0, 0, 0, 0, 9}}}, nil)
	})
	for range 2 {
		b.Pipeline.Update(b.FabricChanged)
		b.passes(t)
		if len(b.announced.rows) != 1 {
			t.Fatal("withdrawn while its flow was being written")
		}
	}
	flows.fail = errors.New("cut off")
	goOn()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		b.Pipeline.Pass(t.Context())
		if rows, _ := b.announced.List(t.Context()); len(rows) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("announced by a flow that is not known")
		}
	}
}
