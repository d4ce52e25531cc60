package tables

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// While ovs-vswitchd is stopped, all that needs none of it goes on: withdrawals, imported
// routes that go, VTEPs that come, VIPs that lose a backend, ports of the same VRF and of
// others. What does need it waits, and nothing goes before what refers to it.
func TestStoppedSwitchDelaysNothingElse(t *testing.T) {
	t.Run("flows", func(t *testing.T) {
		b := newBench()
		b.delaysNothingElse(t, b.flows, func() {}, func() {})
	})
	// All tables between have rows that wait for a bridge: those of a new port of VRF 1001,
	// and of a new VRF.
	t.Run("bridges", func(t *testing.T) {
		b := newBench()
		denied := intent.ServedKey{Gateway: gw.Segment(), Prefix: more.Prefix}
		b.delaysNothingElse(t, b.bridges, func() {
			one, two := intent.GatewayKey{Bridge: "br-new", MAC: intent.MAC{2, 0, 0, 0, 0, 3}}, intent.GatewayKey{Bridge: "br-new", MAC: intent.MAC{2, 0, 0, 0, 0, 4}}
			backend := intent.NewHostKey(1003, netip.MustParseAddr("10.0.0.5"))
			Of(b, intent.Bridges).Update(map[intent.BridgeKey]intent.Bridge{"br-new": {Name: "br-new"}}, nil)
			b.UpdateVRFs(map[intent.VNI]intent.VRF{1003: {VNI: 1003, Index: 3}}, nil)
			Of(b, intent.Gateways).Update(map[intent.GatewayKey]intent.Gateway{one: {Key: one, VNI: 1001}, two: {Key: two, VNI: 1003}}, nil)
			served := intent.ServedKey{Gateway: two, Prefix: more.Prefix}
			Of(b, intent.ServedNextHops).Update(map[intent.ServedKey]intent.Served{served: {Key: served, Answer: true}, denied: {Key: denied}}, nil)
			Of(b, intent.BackendRoutes).Update(map[intent.RouteKey]intent.BackendRoute{backend: {Key: backend, Gateway: two}}, nil)
			b.UpdateRoutes(map[intent.RouteKey]intent.Route{backend: {Key: backend, Kind: intent.RouteLocal, Gateway: two}}, nil)
		}, func() {
			if ok, err := Of(b, intent.ServedNextHops).State(denied); !ok {
				t.Errorf("an address is not denied on another segment: %v", err)
			}
			if n := Of(b, intent.VRFs).Stats().Pending + Of(b, intent.Gateways).Stats().Pending; n != 3 {
				t.Errorf("%d rows wait for the bridge", n)
			}
		})
	})
}

// more is the address of a new port of another VRF.
var more = intent.NewHostKey(1002, netip.MustParseAddr("10.0.0.9"))

// stoppable is a driver of a bench.
type stoppable interface {
	stop() (goOn func())
	hangs() bool
	failWith(error)
}

// delaysNothingElse has a driver stopped, and its rows changed among others. check looks at what
// is there then.
func (b *bench) delaysNothingElse(t *testing.T, driver stoppable, change, check func()) {
	blue := intent.GatewayKey{Bridge: "br-ex", MAC: intent.MAC{2, 0, 0, 0, 0, 2}}
	blueHost := intent.NewHostKey(1002, host.Prefix.Addr())
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
		Of(b, intent.Gateways).Update(map[intent.GatewayKey]intent.Gateway{blue: {Key: blue, VNI: 1002}}, nil)
		Of(b, intent.Policies).Update(map[intent.VNI]intent.VRFPolicy{1002: {VNI: 1002}}, nil)
		b.UpdateRoutes(map[intent.RouteKey]intent.Route{other: imported, blueHost: local(blueHost, blue)}, nil)
		intoBlue, back := into, back
		intoBlue.Gateway, back.Gateway = blue, blue
		Of(b, intent.SteeringFlows).Update(map[intent.SteeringKey]intent.Steering{intoBlue: {Key: intoBlue}, back: {Key: back}}, nil)
		Of(b, intent.Announcements).Update(map[intent.RouteKey]intent.Announcement{blueHost: {Key: blueHost, Gateway: blue}}, nil)
		b.SetVIPs(map[intent.VIPKey]intent.VIP{vip: served(near, far)})
		Of(b, intent.VTEPs).Set(nil)
		Of(b, intent.BackendRoutes).Set(nil)
		Of(b, intent.ServedNextHops).Set(nil)
	})
	b.passes(t)
	if len(b.announced.rows) != 2 {
		t.Fatalf("announced %v", b.announced.rows)
	}
	goOn := driver.stop()
	b.journal = nil
	red := intent.SteeringKey{Gateway: gw, Kind: intent.SteerSource, Prefix: netip.MustParsePrefix("10.0.1.0/24")}
	began := time.Now()
	b.Pipeline.Update(func() {
		change()
		Of(b, intent.SteeringFlows).Update(map[intent.SteeringKey]intent.Steering{red: {Key: red}}, []intent.SteeringKey{back}) // of VRF 1001
		b.UpdateRoutes(map[intent.RouteKey]intent.Route{more: local(more, blue)}, []intent.RouteKey{other, host})
		Of(b, intent.Announcements).Update(map[intent.RouteKey]intent.Announcement{more: {Key: more, Gateway: blue}}, []intent.RouteKey{host})
		Of(b, intent.VTEPs).Update(map[netip.Addr]intent.VTEP{far: {Addr: far}}, nil)
		b.UpdateVIPs(map[intent.VIPKey]intent.VIP{vip: served(far)}, nil)
	})
	b.passes(t)
	t.Logf("4 passes beside a stopped driver took %s", time.Since(began))
	if !driver.hangs() {
		t.Fatal("nothing hangs")
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
	if ok, _ := Of(b, intent.VTEPs).State(far); !ok {
		t.Error("a new VTEP is not there")
	}
	check()
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
