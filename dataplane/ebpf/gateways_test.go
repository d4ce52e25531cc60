package ebpf

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// bridgePort is the port of every bridge.
type bridgePort struct{ port Port }

func (b *bridgePort) Port(intent.BridgeKey) (Port, bool) { return b.port, true }

// newTestStore makes maps that nobody uses.
func newTestStore(t *testing.T, b Bridges) *store {
	t.Helper()
	if err := rlimit.RemoveMemlock(); err != nil {
		t.Fatal(err)
	}
	limits := Limits{VRFs: 16, Gateways: 16, VTEPs: 16, Served: 16, Hosts: 256, Prefixes: 64, NextHops: 64, Groups: 16}.withDefaults()
	specs, err := mapSpecs(limits)
	if err != nil {
		t.Fatal(err)
	}
	all := tables{}
	t.Cleanup(all.close)
	for name, spec := range specs {
		if all[name], err = ebpf.NewMap(spec); err != nil {
			t.Fatalf("map %s (root is needed): %v", name, err)
		}
	}
	s := newStore(all, limits, Config{Bridges: b})
	if err := s.repair(); err != nil {
		t.Fatal(err)
	}
	return s
}

// breakMap makes every call for a map fail until mend.
func breakMap(t *testing.T, s *store, name string) (mend func()) {
	t.Helper()
	whole := s.t[name]
	broken, err := whole.Clone()
	if err != nil {
		t.Fatal(err)
	}
	broken.Close()
	s.t[name] = broken
	return func() { s.t[name] = whole }
}

const (
	wasVNI = intent.VNI(10)
	isVNI  = intent.VNI(20)
)

var (
	movedGateway = intent.GatewayKey{Bridge: "br-ex", MAC: intent.MAC{0xfa, 0x16, 0x3e, 0, 0, 1}}
	movedServed  = []netip.Prefix{netip.MustParsePrefix("172.24.4.9/32"), netip.MustParsePrefix("fd17::/64")}
	// Of the default VRF, which outlive the change, and of the gateway's first VRF.
	exposed = []intent.RouteKey{intent.NewRouteKey(intent.DefaultVRF, netip.MustParsePrefix("198.51.100.7/32")),
		intent.NewRouteKey(intent.DefaultVRF, netip.MustParsePrefix("2001:db8:7::/64"))}
	tenants = []intent.RouteKey{intent.NewRouteKey(wasVNI, netip.MustParsePrefix("10.0.0.7/32")),
		intent.NewRouteKey(wasVNI, netip.MustParsePrefix("fd00::/64"))}
)

// moving is a gateway port in the VRF wasVNI that is about to be in isVNI, behind
// another device.
func moving(t *testing.T) *store {
	t.Helper()
	b := &bridgePort{Port{IfIndex: 7, MTU: 1500}}
	s := newTestStore(t, b)
	if err := s.applyGateway(intent.Gateway{Key: movedGateway, VNI: wasVNI, LogicalPort: "lrp"}); err != nil {
		t.Fatal(err)
	}
	if err := refer(s, slices.Concat(exposed, tenants)); err != nil {
		t.Fatal(err)
	}
	b.port.IfIndex = 8
	return s
}

// refer writes what refers to the gateway port.
func refer(s *store, routes []intent.RouteKey) error {
	var err error
	for _, p := range movedServed {
		err = errors.Join(err, s.applyServed(intent.Served{Key: intent.ServedKey{Gateway: movedGateway, Prefix: p}, Answer: true}))
	}
	var rows []reconcile.Row[intent.RouteKey, intent.Route]
	for _, k := range routes {
		rows = append(rows, reconcile.Row[intent.RouteKey, intent.Route]{Key: k, Value: intent.Route{Key: k, Kind: intent.RouteLocal, Gateway: movedGateway}})
	}
	return errors.Join(err, errors.Join(s.applyRoutes(rows)...))
}

// startAgain reads the maps as a new process does, whose reconcilers then write what
// refers to the gateway port, and delete what is of none that they know.
func startAgain(s *store, g intent.Gateway) error {
	err := errors.Join(s.repair(), s.applyGateway(g), refer(s, exposed))
	list, failed := (&Served{s}).List(context.Background())
	for k := range list {
		if k.Gateway != movedGateway {
			err = errors.Join(err, s.deleteServed(k))
		}
	}
	return errors.Join(err, failed)
}

// liveRows are the rows of entries that packets of a VRF enter OVN by.
func liveRows(t *testing.T, s *store) map[uint32]uint32 {
	t.Helper()
	out := map[uint32]uint32{}
	for row := range s.t[bpfMapEntriesV1].MaxEntries() {
		var e bpfEntry
		if err := s.t[bpfMapEntriesV1].Lookup(row, &e); err != nil {
			t.Fatal(err)
		}
		if e.Vni != 0 {
			out[row] = e.Vni
		}
	}
	return out
}

// wantMoved looks at what there is after a change that came to its end.
func wantMoved(t *testing.T, s *store, vni intent.VNI) {
	t.Helper()
	now := s.live[movedGateway]
	if live := liveRows(t, s); len(live) != 1 || live[now.row] != uint32(vni) {
		t.Errorf("entries %v, want row %d of VRF %d", live, now.row, vni)
	}
	list, err := (&Gateways{s}).List(t.Context())
	if g := list[movedGateway]; err != nil || len(list) != 1 || g.VNI != vni || g.LogicalPort != "lrp" {
		t.Errorf("gateways %v, %v", list, err)
	}
	var key bpfGatewayKey
	n, err := pinned.Walk(s.t[bpfMapGatewaysV1], func(k bpfGatewayKey, _ bpfGateway) { key = k })
	if n != 1 || key.Ifindex != 8 || err != nil {
		t.Errorf("%d rows of gateways, the last of device %d: %v", n, key.Ifindex, err)
	}
	served, err := (&Served{s}).List(t.Context())
	if err != nil || len(served) != len(movedServed) {
		t.Errorf("served %v, %v", served, err)
	}
	for k := range s.served {
		if k.Entry != now.row {
			t.Errorf("served behind row %d, want %d", k.Entry, now.row)
		}
	}
	for _, k := range exposed {
		if r, _, err := s.lookupRoute(k); err != nil || r.Ref != now.row {
			t.Errorf("route %s leads to row %d, want %d: %v", k, r.Ref, now.row, err)
		}
	}
	speakers := map[uint32]uint32{}
	if _, err := pinned.Walk(s.t[bpfMapSpeakersV1], func(vni, row uint32) { speakers[vni] = row }); err != nil ||
		!maps.Equal(speakers, map[uint32]uint32{uint32(vni): now.row}) {
		t.Errorf("speakers %v, %v", speakers, err)
	}
	if len(s.leaving) > 0 {
		t.Errorf("not at an end: %v", s.leaving)
	}
}

// changeMaps are those that a change of a gateway port's VRF writes.
var changeMaps = []string{bpfMapNamesV1, bpfMapEntriesV1, bpfMapAskedV1, bpfMapGatewaysV1, bpfMapGateFrontV2, bpfMapSpeakersV1,
	bpfMapServedV1, bpfMapHostsV1, bpfMapPrefixes6V1}

// A change of a gateway port's VRF that fails at any map leaves no row by which packets
// of its first VRF enter it, and the next try does all of the rest; so does the next
// start.
func TestGatewayChangeFailsHalfWay(t *testing.T) {
	wanted := intent.Gateway{Key: movedGateway, VNI: isVNI, LogicalPort: "lrp"}
	for _, name := range changeMaps {
		for _, end := range []struct {
			name string
			vni  intent.VNI
			try  func(s *store) error
		}{
			{"next try", isVNI, func(s *store) error { return s.applyGateway(wanted) }},
			{"back again", wasVNI, func(s *store) error {
				return s.applyGateway(intent.Gateway{Key: movedGateway, VNI: wasVNI, LogicalPort: "lrp"})
			}},
			{"next start", isVNI, func(s *store) error { return startAgain(s, wanted) }},
		} {
			t.Run(name+"/"+end.name, func(t *testing.T) {
				s := moving(t)
				mend := breakMap(t, s, name)
				for range 2 {
					if err := s.applyGateway(wanted); err == nil {
						t.Fatal("the change is said to have succeeded")
					}
				}
				mend()
				for row, vni := range liveRows(t, s) {
					// With entries themselves broken nothing can be taken out of service.
					if vni == uint32(wasVNI) && name != bpfMapEntriesV1 {
						t.Errorf("row %d is live in the VRF that was left", row)
					}
				}
				if err := end.try(s); err != nil {
					t.Fatal(err)
				}
				wantMoved(t, s, end.vni)
			})
		}
	}
}

// A change that fails half-way at any map, and is taken back, leaves the row as it was before
// it counts as programmed; until then it is listed under its own key, and as nothing known.
func TestGatewayChangeIsTakenBack(t *testing.T) {
	for _, name := range changeMaps {
		t.Run(name, func(t *testing.T) {
			s := moving(t)
			driver := &Gateways{s}
			before := map[intent.GatewayKey]intent.Gateway{movedGateway: {Key: movedGateway, VNI: wasVNI, LogicalPort: "lrp"}}
			table := reconcile.NewTable("gateways", driver, reconcile.TableOptions[intent.GatewayKey, intent.Gateway]{})
			p := reconcile.NewPipeline(reconcile.PipelineOptions{Log: slog.New(slog.DiscardHandler)}, table)
			want := func(rows map[intent.GatewayKey]intent.Gateway) bool {
				p.Update(func() { table.Set(rows) })
				p.Pass(t.Context())
				ok, _ := table.State(movedGateway)
				return ok
			}
			if !want(before) {
				t.Fatal("not programmed at first")
			}
			mend := breakMap(t, s, name)
			if want(map[intent.GatewayKey]intent.Gateway{movedGateway: {Key: movedGateway, VNI: isVNI, LogicalPort: "lrp"}}) {
				t.Fatal("the change is said to have succeeded")
			}
			if want(before) { // this map is not needed for that
				wantMoved(t, s, wasVNI)
			}
			mend()
			list, err := driver.List(t.Context())
			for k := range list {
				if err != nil || k != movedGateway {
					t.Errorf("listed %v, %v", list, err)
				}
			}
			p.Update(func() { table.Touch(movedGateway) })
			if !want(before) {
				_, err := table.State(movedGateway)
				t.Errorf("not programmed in the end: %v, wanted %v", err, before)
			}
			wantMoved(t, s, wasVNI)
		})
	}
}

// A gateway port that comes back in another VRF inherits what refers to it, at a later
// try if not at the first.
func TestGatewayInheritsAtALaterTry(t *testing.T) {
	wanted := intent.Gateway{Key: movedGateway, VNI: isVNI, LogicalPort: "lrp"}
	for _, name := range []string{bpfMapServedV1, bpfMapHostsV1, bpfMapPrefixes6V1} {
		t.Run(name, func(t *testing.T) {
			s := moving(t)
			if err := s.deleteGateway(movedGateway); err != nil {
				t.Fatal(err)
			}
			if live := liveRows(t, s); len(live) > 0 {
				t.Errorf("entries %v are live without a gateway", live)
			}
			mend := breakMap(t, s, name)
			if err := s.applyGateway(wanted); err == nil {
				t.Fatal("nothing was inherited, and nothing said")
			}
			mend()
			if err := s.applyGateway(wanted); err != nil {
				t.Fatal(err)
			}
			wantMoved(t, s, isVNI)
		})
	}
}

// An address of the default VRF takes what fits the network behind the bridge; a
// tenant's is behind a router that knows better, and so is one with an MTU of its own.
func TestGatewayMTU(t *testing.T) {
	b := &bridgePort{Port{IfIndex: 7, MTU: 9216}}
	s := newTestStore(t, b)
	network := uint16(1500)
	s.networks = func(intent.BridgeKey) uint16 { return network }
	for _, tt := range []struct {
		name              string
		vni               intent.VNI
		network, own, mtu uint16
	}{
		{"default VRF", intent.DefaultVRF, 1500, 0, 1500},
		{"network of more than the pair takes", intent.DefaultVRF, 65000, 0, 9216},
		{"network that is not known", intent.DefaultVRF, 0, 0, 9216},
		{"tenant", wasVNI, 1500, 0, 9216},
		{"MTU of its own", intent.DefaultVRF, 1500, 1400, 1400},
	} {
		network = tt.network
		g := intent.Gateway{Key: movedGateway, VNI: tt.vni, LogicalPort: "port", MTU: tt.own}
		e, _, err := s.entryOf(g)
		if err != nil || e.Mtu != tt.mtu {
			t.Errorf("%s: %d, want %d: %v", tt.name, e.Mtu, tt.mtu, err)
		}
	}
	g := intent.Gateway{Key: movedGateway, VNI: intent.DefaultVRF, LogicalPort: "port"}
	network = 1500
	if err := s.applyGateway(g); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		network uint16
		want    intent.Gateway
	}{{1500, g}, {9000, intent.Gateway{}}, {1500, g}} {
		network = tt.network
		if list, err := (&Gateways{s}).List(t.Context()); err != nil || list[movedGateway] != tt.want {
			t.Errorf("with %d listed as %v, want %v: %v", tt.network, list[movedGateway], tt.want, err)
		}
	}
}

// A row that is refused before anything is written leaves what was there, and is known to.
func TestRefusedRowsChangeNothing(t *testing.T) {
	b := &bridgePort{Port{IfIndex: 7, MTU: 1500}}
	s := newTestStore(t, b)
	gw := intent.GatewayKey{Bridge: "br", MAC: intent.MAC{2, 0, 0, 0, 0, 1}}
	vrfs := reconcile.NewTable("vrfs", &VRFs{s}, reconcile.TableOptions[intent.VNI, intent.VRF]{})
	gateways := reconcile.NewTable("gateways", &Gateways{s}, reconcile.TableOptions[intent.GatewayKey, intent.Gateway]{})
	p := reconcile.NewPipeline(reconcile.PipelineOptions{Log: slog.New(slog.DiscardHandler)}, vrfs, gateways)
	want := func(v intent.VRF, g intent.Gateway) {
		p.Update(func() {
			vrfs.Set(map[intent.VNI]intent.VRF{10: v})
			gateways.Set(map[intent.GatewayKey]intent.Gateway{gw: g})
		})
		p.Pass(t.Context())
	}
	v, g := intent.VRF{VNI: 10, Index: 1}, intent.Gateway{Key: gw, VNI: 10}
	want(v, g)
	for name, r := range map[string]struct {
		vrf     intent.VRF
		gateway intent.Gateway
		ifindex uint32
	}{
		"device and address": {intent.VRF{VNI: 10, Index: 1, Path: intent.PathKernel}, intent.Gateway{Key: gw, VNI: 10, Addr4: netip.IPv4Unspecified()}, 7},
		"index and bridge":   {intent.VRF{VNI: 10, Index: 99}, intent.Gateway{Key: gw, VNI: 10, MTU: 1400}, 0},
		"VNI":                {intent.VRF{Index: 1}, intent.Gateway{Key: gw}, 7},
	} {
		b.port.IfIndex = r.ifindex
		want(r.vrf, r.gateway)
		b.port.IfIndex = 7
		for _, s := range []reconcile.Stats{vrfs.Stats(), gateways.Stats()} {
			if s.ApplyErrors == 0 || s.Unknown > 0 || s.Actual != 1 {
				t.Errorf("%s: %+v", name, s)
			}
		}
		_, hasV := vrfs.Rows()
		if _, hasG := gateways.Rows(); hasV[10] != v || hasG[gw] != g {
			t.Errorf("%s: there are %v and %v", name, hasV, hasG)
		}
	}
}
