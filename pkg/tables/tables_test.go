package tables

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// mapDriver keeps rows in a map, writes a journal that all drivers share, and
// fails where it is told to.
type mapDriver[K, V comparable] struct {
	name    string
	rows    map[K]V
	journal *[]string
	fail    error
	failKey K // with it only this row fails
	unread  error
	before  func() // called before rows are written
	after   func() // called after each write of a row
	// gate has calls not return until it is closed, and hung counts these.
	gate atomic.Pointer[chan struct{}]
	hung atomic.Int32
}

// stop has calls not return until what it returns is called.
func (d *mapDriver[K, V]) stop() (goOn func()) {
	c := make(chan struct{})
	d.gate.Store(&c)
	return func() { d.gate.Store(nil); close(c) }
}

func (d *mapDriver[K, V]) failWith(err error) { d.fail = err }

func (d *mapDriver[K, V]) hangs() bool { return d.hung.Load() > 0 }

func (d *mapDriver[K, V]) wait() {
	if c := d.gate.Load(); c != nil {
		d.hung.Add(1)
		<-*c
	}
}

func (d *mapDriver[K, V]) List(context.Context) (map[K]V, error) {
	d.wait()
	return maps.Clone(d.rows), d.unread
}

func (d *mapDriver[K, V]) Apply(_ context.Context, rows []reconcile.Row[K, V]) []error {
	d.wait()
	if d.before != nil {
		d.before()
	}
	errs := make([]error, len(rows))
	for i, r := range rows {
		var all K
		if d.failKey == all || d.failKey == r.Key {
			errs[i] = d.fail
		}
		if errs[i] == nil {
			d.rows[r.Key] = r.Value
			*d.journal = append(*d.journal, "+"+d.name)
			d.written()
		}
	}
	return errs
}

func (d *mapDriver[K, V]) Delete(_ context.Context, keys []K) []error {
	d.wait()
	for _, k := range keys {
		delete(d.rows, k)
		*d.journal = append(*d.journal, "-"+d.name)
		d.written()
	}
	return nil
}

func (d *mapDriver[K, V]) written() {
	if d.after != nil {
		d.after()
	}
}

func newDriver[K, V comparable](name string, journal *[]string) *mapDriver[K, V] {
	return &mapDriver[K, V]{name: name, rows: map[K]V{}, journal: journal}
}

// bench is a set of tables over map drivers, and one tenant with one host.
type bench struct {
	*Tables
	drivers          Drivers
	journal          []string
	ovn, bgp, linger bool
	keeps            intent.NextHopSet // what alone lingers, if not all
	// doubts: the routes were withdrawn while some row was unknown, and are so still.
	doubts         bool
	pending        intent.VNI
	bridges        *mapDriver[intent.BridgeKey, intent.Bridge]
	flows          *mapDriver[intent.SteeringKey, intent.Steering]
	vrfs           *mapDriver[intent.VNI, intent.VRF]
	kernelVRFs     *mapDriver[intent.VNI, intent.KernelVRF]
	kernelGateways *mapDriver[intent.GatewayKey, intent.KernelGateway]
	kernelRoutes   *mapDriver[intent.RouteKey, intent.Route]
	policies       *mapDriver[intent.VNI, intent.VRFPolicy]
	gateways       *mapDriver[intent.GatewayKey, intent.Gateway]
	announced      *mapDriver[intent.RouteKey, intent.Announcement]
	routesThere    *mapDriver[intent.RouteKey, intent.Route]
	backendRoutes  *mapDriver[intent.RouteKey, intent.BackendRoute]
	vips           *mapDriver[intent.VIPKey, intent.VIP]
	reg            *status.Registry
}

var (
	gw   = intent.GatewayKey{Bridge: "br-ex", MAC: intent.MAC{2, 0, 0, 0, 0, 1}}
	host = intent.NewHostKey(1001, netip.MustParseAddr("10.0.0.1"))
	into = intent.SteeringKey{Gateway: gw, Kind: intent.SteerToOVN}
	// The host's subnet is what is steered.
	back  = intent.SteeringKey{Gateway: gw, Kind: intent.SteerSource, Prefix: netip.MustParsePrefix("10.0.0.0/24")}
	other = intent.NewHostKey(1001, netip.MustParseAddr("fd00::1"))
)

func newBench() *bench {
	b := &bench{ovn: true, bgp: true}
	j := &b.journal
	b.gateways = newDriver[intent.GatewayKey, intent.Gateway]("gateway", j)
	b.announced = newDriver[intent.RouteKey, intent.Announcement]("announcement", j)
	b.routesThere = newDriver[intent.RouteKey, intent.Route]("route", j)
	b.bridges = newDriver[intent.BridgeKey, intent.Bridge]("bridge", j)
	b.flows = newDriver[intent.SteeringKey, intent.Steering]("flow", j)
	b.policies = newDriver[intent.VNI, intent.VRFPolicy]("policy", j)
	b.vrfs = newDriver[intent.VNI, intent.VRF]("vrf", j)
	b.kernelVRFs = newDriver[intent.VNI, intent.KernelVRF]("kernel-vrf", j)
	b.kernelGateways = newDriver[intent.GatewayKey, intent.KernelGateway]("kernel-gateway", j)
	b.kernelRoutes = newDriver[intent.RouteKey, intent.Route]("kernel-route", j)
	b.backendRoutes = newDriver[intent.RouteKey, intent.BackendRoute]("backend-route", j)
	b.vips = newDriver[intent.VIPKey, intent.VIP]("vip", j)
	b.reg = status.NewRegistry(slog.New(slog.DiscardHandler))
	b.drivers = driversOf(func(d Drivers) {
		Drive(d, intent.Bridges, b.bridges)
		Drive(d, intent.VRFs, b.vrfs)
		Drive(d, intent.KernelVRFs, b.kernelVRFs)
		Drive(d, intent.KernelGateways, b.kernelGateways)
		Drive(d, intent.KernelRoutes, b.kernelRoutes)
		Drive(d, intent.Gateways, b.gateways)
		Drive(d, intent.ServedNextHops, newDriver[intent.ServedKey, intent.Served]("served", j))
		Drive(d, intent.VTEPs, newDriver[netip.Addr, intent.VTEP]("vtep", j))
		Drive(d, intent.Routes, b.routesThere)
		Drive(d, intent.SteeringFlows, b.flows)
		Drive(d, intent.Policies, b.policies)
		Drive(d, intent.BackendRoutes, b.backendRoutes)
		Drive(d, intent.VIPs, b.vips)
		Drive(d, intent.Announcements, b.announced)
	})
	b.Tables = New(b.drivers, Sources{
		OVN: func() bool { return b.ovn }, BGP: func() bool { return b.bgp },
		Pending: func(vni intent.VNI) bool { return b.pending == vni },
		Lingers: func(hops intent.NextHopSet, _ func(netip.Addr) bool) bool {
			return b.linger && (b.keeps == "" || b.keeps == hops)
		},
	}, Options{Status: b.reg, Log: slog.New(slog.DiscardHandler)})
	return b
}

func driversOf(add func(Drivers)) Drivers {
	d := Drivers{}
	add(d)
	return d
}

func (b *bench) want(present bool) {
	b.Pipeline.Update(func() {
		if !present {
			Of(b, intent.Bridges).Set(nil)
			Of(b, intent.KernelVRFs).Set(nil)
			Of(b, intent.KernelGateways).Set(nil)
			b.SetVRFs(nil)
			Of(b, intent.Gateways).Set(nil)
			b.SetRoutes(nil)
			Of(b, intent.SteeringFlows).Set(nil)
			Of(b, intent.Policies).Set(nil)
			Of(b, intent.Announcements).Set(nil)
			return
		}
		Of(b, intent.Bridges).Set(map[intent.BridgeKey]intent.Bridge{"br-ex": {Name: "br-ex"}})
		Of(b, intent.KernelVRFs).Set(nil)
		Of(b, intent.KernelGateways).Set(nil)
		b.SetVRFs(map[intent.VNI]intent.VRF{1001: {VNI: 1001, Index: 1}})
		Of(b, intent.Gateways).Set(map[intent.GatewayKey]intent.Gateway{gw: {Key: gw, VNI: 1001}})
		b.SetRoutes(map[intent.RouteKey]intent.Route{host: {Key: host, Kind: intent.RouteLocal, Gateway: gw}})
		Of(b, intent.SteeringFlows).Set(map[intent.SteeringKey]intent.Steering{into: {Key: into}, back: {Key: back}})
		Of(b, intent.Policies).Set(map[intent.VNI]intent.VRFPolicy{1001: {VNI: 1001}})
		Of(b, intent.Announcements).Set(map[intent.RouteKey]intent.Announcement{host: {Key: host, Gateway: gw}})
	})
}

func (b *bench) passes(t *testing.T) {
	for range 4 {
		b.Pipeline.Pass(t.Context())
	}
}

func TestProgramThenAnnounceWithdrawThenUnprogram(t *testing.T) {
	b := newBench()
	b.want(true)
	b.passes(t)
	want := []string{"+bridge", "+vrf", "+gateway", "+route", "+flow", "+flow", "+policy", "+announcement"}
	if !slices.Equal(b.journal, want) {
		t.Fatalf("added %v", b.journal)
	}
	b.journal = nil
	b.want(false)
	b.passes(t)
	want = []string{"-announcement", "-policy", "-flow", "-flow", "-route", "-gateway", "-vrf", "-bridge"}
	if !slices.Equal(b.journal, want) {
		t.Fatalf("removed %v", b.journal)
	}
}

func TestNothingIsAnnouncedThroughAGatewayThatFailed(t *testing.T) {
	b := newBench()
	b.gateways.fail = errors.New("the map is full")
	b.want(true)
	b.passes(t)
	if len(b.announced.rows) != 0 {
		t.Fatal("announced")
	}
	if o, ok := b.reg.Get("gateways", "gateway", gw.String()); !ok || o.State != status.Error {
		t.Errorf("status: %+v", o)
	}
	b.gateways.fail = nil
	b.Pipeline.Update(func() { Of(b, intent.Gateways).Touch(gw) })
	b.passes(t)
	if len(b.announced.rows) != 1 {
		t.Fatal("not announced after the gateway came")
	}
	if _, ok := b.reg.Get("gateways", "gateway", gw.String()); ok {
		t.Error("the error is still shown")
	}
}

func TestNothingIsRemovedWhileOVNIsAway(t *testing.T) {
	b := newBench()
	b.want(true)
	b.passes(t)
	b.journal, b.ovn = nil, false
	b.want(false)
	b.passes(t)
	if len(b.journal) != 0 {
		t.Fatalf("removed %v", b.journal)
	}
	b.ovn = true
	b.passes(t)
	if len(b.routesThere.rows) != 0 {
		t.Error("still there after OVN came back")
	}
}

// A VTEP of before a start stays as long as it may come back, and no other does.
func TestVTEPStaysWhileItMayComeBack(t *testing.T) {
	b := newBench()
	b.want(true)
	back, gone := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	there := b.drivers[intent.VTEPs].(*mapDriver[netip.Addr, intent.VTEP]).rows
	there[back], there[gone] = intent.VTEP{Addr: back}, intent.VTEP{Addr: gone}
	b.Pipeline.Update(func() { Of(b, intent.VTEPs).Set(nil) })
	stay := func(when string, bgp, linger, wantBack, wantGone bool) {
		t.Helper()
		b.bgp, b.linger, b.keeps = bgp, linger, intent.NewNextHopSet(intent.NextHop{VTEP: back})
		b.passes(t)
		_, hasBack := there[back]
		_, hasGone := there[gone]
		if hasBack != wantBack || hasGone != wantGone {
			t.Errorf("%s: %t, %t", when, hasBack, hasGone)
		}
	}
	stay("before BGP is in sync", false, false, true, true)
	stay("while one may come back", true, true, true, false)
	stay("later", true, false, false, false)
}

func TestImportsWaitForBGPAndGoWithTheirVRF(t *testing.T) {
	b := newBench()
	b.want(true)
	b.routesThere.rows[other] = intent.Route{Key: other, Kind: intent.RouteRemote}
	b.bgp = false
	b.passes(t)
	if _, ok := b.routesThere.rows[other]; !ok {
		t.Fatal("an import of before was removed before End-of-RIB")
	}
	b.bgp, b.linger = true, true
	b.passes(t)
	if _, ok := b.routesThere.rows[other]; !ok {
		t.Fatal("an import of before was removed while its VTEP may come back")
	}
	b.linger = false
	b.passes(t)
	if _, ok := b.routesThere.rows[other]; ok {
		t.Fatal("an import that nobody announces stays for ever")
	}
	b.routesThere.rows[other] = intent.Route{Key: other, Kind: intent.RouteRemote}
	b.bgp = false
	b.Pipeline.RelistAll()
	b.want(false)
	b.passes(t)
	if len(b.routesThere.rows) != 0 {
		t.Error("imports of a VRF that is gone wait for BGP")
	}
}
