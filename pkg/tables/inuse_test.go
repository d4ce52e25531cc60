package tables

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// family are the addresses of a test, of one family.
type family struct {
	vip      netip.Addr
	backends [3]netip.Addr
}

var families = []family{
	{netip.MustParseAddr("10.99.0.1"), [3]netip.Addr{netip.MustParseAddr("10.1.0.1"), netip.MustParseAddr("10.1.0.2"), netip.MustParseAddr("10.1.0.3")}},
	{netip.MustParseAddr("fd99::1"), [3]netip.Addr{netip.MustParseAddr("fd01::1"), netip.MustParseAddr("fd01::2"), netip.MustParseAddr("fd01::3")}},
}

// balanced is a bench with VIPs whose backends' networks are not exposed. Its clock stands.
type balanced struct {
	*bench
	family
	now time.Time
}

func eachFamily(t *testing.T, test func(t *testing.T, b *balanced)) {
	for _, f := range families {
		t.Run(f.vip.String(), func(t *testing.T) { test(t, newBalanced(f)) })
	}
}

func newBalanced(f family) *balanced {
	b := &balanced{bench: newBench(), family: f, now: time.Now()}
	b.clock()
	return b
}

func (b *balanced) clock() {
	now := func() time.Time { return b.now }
	b.ways.to.now, b.ways.from.now = now, now
}

// restart is a new process on what the last one left.
func (b *balanced) restart() {
	old := b.bench
	b.bench = newBench()
	b.clock()
	maps.Copy(b.bridges.rows, old.bridges.rows)
	maps.Copy(b.vrfs.rows, old.vrfs.rows)
	maps.Copy(b.gateways.rows, old.gateways.rows)
	maps.Copy(b.routesThere.rows, old.routesThere.rows)
	maps.Copy(b.flows.rows, old.flows.rows)
	maps.Copy(b.backendRoutes.rows, old.backendRoutes.rows)
	maps.Copy(b.vips.rows, old.vips.rows)
}

// service is a VIP of the bench: its port, and which of the backends it has, by number.
type service struct {
	port     uint16
	backends []int
	flush    bool
	ovn      bool
}

func (b *balanced) vip(s service) intent.VIP {
	v := intent.VIP{Key: intent.VIPKey{VNI: 1001, Protocol: intent.TCP, Addr: b.family.vip, Port: s.port}, OVN: s.ovn}
	if s.ovn {
		return v
	}
	var list []intent.Backend
	for _, n := range s.backends {
		list = append(list, intent.Backend{Addr: b.backends[n], Port: 8080, Weight: 1})
	}
	v.Backends, v.Slots, v.Flush = intent.NewBackendSet(list...), 1021, s.flush
	return v
}

func (b *balanced) answer(n int) intent.SteeringKey {
	a := b.backends[n]
	return intent.SteeringKey{Gateway: gw, Kind: intent.SteerAnswer, Prefix: netip.PrefixFrom(a, a.BitLen()), Protocol: intent.TCP, Port: 8080}
}

// serve wants VIPs, with all that makes their address reached.
func (b *balanced) serve(t *testing.T, services ...service) {
	t.Helper()
	vips, routes, flows := map[intent.VIPKey]intent.VIP{}, map[intent.RouteKey]intent.BackendRoute{}, map[intent.SteeringKey]intent.Steering{}
	for _, s := range services {
		v := b.vip(s)
		vips[v.Key] = v
		if s.ovn {
			continue
		}
		for _, n := range s.backends {
			k := intent.NewHostKey(1001, b.backends[n])
			routes[k] = intent.BackendRoute{Key: k, Gateway: gw}
			flows[b.answer(n)] = intent.Steering{Key: b.answer(n)}
		}
	}
	address := intent.NewHostKey(1001, b.family.vip)
	source := intent.SteeringKey{Gateway: gw, Kind: intent.SteerSource, Prefix: address.Prefix}
	if _, begun := Of(b, intent.Bridges).Wanted("br-ex"); !begun {
		b.want(true)
	}
	b.Pipeline.Update(func() {
		b.SetVIPs(vips)
		Of(b, intent.BackendRoutes).Set(routes)
		flows[into], flows[back], flows[source] = intent.Steering{Key: into}, intent.Steering{Key: back}, intent.Steering{Key: source}
		Of(b, intent.SteeringFlows).Set(flows)
		all, announced := map[intent.RouteKey]intent.Route{host: {Key: host, Kind: intent.RouteLocal, Gateway: gw}}, map[intent.RouteKey]intent.Announcement{host: {Key: host, Gateway: gw}}
		if len(services) > 0 {
			all[address] = intent.Route{Key: address, Kind: intent.RouteLocal, Gateway: gw, VIP: true}
			announced[address] = intent.Announcement{Key: address, Gateway: gw, VIPs: true}
		}
		b.SetRoutes(all)
		Of(b, intent.Announcements).Set(announced)
	})
	b.passes(t)
}

// reached are the backends that there are ways to and from, by number.
func (b *balanced) reached(t *testing.T) []int {
	t.Helper()
	out := []int{}
	for n, a := range b.backends {
		_, to := b.backendRoutes.rows[intent.NewHostKey(1001, a)]
		_, from := b.flows.rows[b.answer(n)]
		if to != from {
			t.Errorf("backend %d: a way to it %t, and from it %t", n, to, from)
		}
		if to {
			out = append(out, n)
		}
	}
	return out
}

func (b *balanced) see(t *testing.T, what string, want ...int) {
	t.Helper()
	b.passes(t)
	if got := b.reached(t); !slices.Equal(got, want) {
		t.Errorf("%s: ways to the backends %v, want %v", what, got, want)
	}
	for _, s := range b.Pipeline.Stages() {
		if changes := s.Changes(); len(changes) > 0 {
			t.Errorf("%s: differences %+v", what, changes)
		}
		if stats := s.Stats(); stats.Wanted != stats.Actual && s.Name() != "policies" {
			t.Errorf("%s: table %s: %+v", what, s.Name(), stats)
		}
	}
}

func (b *balanced) later(d time.Duration) {
	b.now = b.now.Add(d)
	b.Pipeline.Kick()
}

// Flows to backends go on for as long as they may be known when no VIP leads there any
// more, whatever the reason, with the same ways.
func TestWaysLinger(t *testing.T) {
	for name, rest := range map[string][]service{
		"the backend is taken out":            {{port: 80, backends: []int{0}}},
		"the VIP is OVN's":                    {{port: 80, ovn: true}, {port: 81, backends: []int{0}}},
		"the VIP has gone":                    {{port: 81, backends: []int{0}}},
		"the VIP has gone, the rest is OVN's": {{port: 81, ovn: true}},
	} {
		t.Run(name, func(t *testing.T) {
			eachFamily(t, func(t *testing.T, b *balanced) {
				b.serve(t, service{port: 80, backends: []int{0, 1}}, service{port: 81, backends: []int{0}})
				b.see(t, "at first", 0, 1)
				b.serve(t, rest...)
				b.see(t, "at once", 0, 1)
				b.later(intent.FlowIdle - time.Second)
				clear(b.flows.rows) // an ovs-vswitchd that was restarted has none
				b.Pipeline.RelistAll()
				b.see(t, "nearly at the end", 0, 1)
				b.later(2 * time.Second)
				var left []int
				if rest[len(rest)-1].backends != nil {
					left = []int{0}
				}
				b.see(t, "at the end", left...)
			})
		})
	}
}

// Flows that end with their backend need no way; those of another VIP do.
func TestWaysOfFlowsThatEndedGo(t *testing.T) {
	eachFamily(t, func(t *testing.T, b *balanced) {
		b.serve(t, service{port: 80, backends: []int{0, 1, 2}, flush: true}, service{port: 81, backends: []int{1}})
		b.serve(t, service{port: 80, backends: []int{0, 1, 2}, flush: true}, service{port: 81, backends: []int{0}})
		b.serve(t, service{port: 80, backends: []int{0}, flush: true}, service{port: 81, backends: []int{0}})
		b.see(t, "two are taken out", 0, 1)
		b.serve(t, service{port: 81, backends: []int{0}})
		b.later(intent.FlowIdle)
		b.see(t, "later", 0)
	})
}

// A way stays for as long as a flow has packets, and until it is idle.
func TestWaysLingerForFlowsThatGoOn(t *testing.T) {
	eachFamily(t, func(t *testing.T, b *balanced) {
		b.serve(t, service{port: 80, backends: []int{0, 1, 2}})
		b.serve(t, service{port: 80, backends: []int{0}})
		used := func(n int, port uint16, ago time.Duration) {
			b.Pipeline.Update(func() {
				b.FlowsUsed(map[FlowEnd]time.Duration{{VNI: 1001, Protocol: intent.TCP, Backend: netip.AddrPortFrom(b.backends[n], port)}: ago})
			})
		}
		ends := func(within time.Duration) (yes bool) {
			b.Pipeline.View(func() { yes = b.PathsExpire(within) })
			return yes
		}
		if ends(intent.FlowIdle-time.Second) || !ends(intent.FlowIdle) {
			t.Error("it is not known when ways end")
		}
		// The port of one that is opted out needs no flow that brings its answers.
		from := maps.Clone(b.ways.from.until)
		clear(b.ways.from.until)
		if !ends(intent.FlowIdle) {
			t.Error("it is not known when ways to backends alone end")
		}
		maps.Copy(b.ways.from.until, from)
		b.later(intent.FlowIdle - time.Minute)
		used(0, 8080, 0) // a VIP leads there
		used(1, 8080, time.Hour)
		used(2, 8080, 2*intent.FlowIdle)
		b.later(time.Minute)
		b.see(t, "with a flow of an hour ago", 0, 1)
		b.later(intent.FlowIdle - time.Hour - 2*time.Minute)
		b.see(t, "just before it is idle", 0, 1)
		if !ends(time.Minute) {
			t.Error("it is not known when the way of a flow ends")
		}
		b.later(time.Minute)
		used(1, 8080, 0) // too late
		b.see(t, "when it is idle", 0)
		if ends(intent.FlowIdle) {
			t.Error("a way that has gone is to go")
		}
	})
}

// What is found at a start and nobody wants may have flows.
func TestWaysThatAreFoundLinger(t *testing.T) {
	eachFamily(t, func(t *testing.T, b *balanced) {
		b.serve(t, service{port: 80, backends: []int{0, 1}})
		b.later(intent.FlowIdle)
		b.restart()
		b.serve(t, service{port: 80, backends: []int{0}})
		b.see(t, "after a start", 0, 1)
		b.later(intent.FlowIdle - time.Second)
		b.see(t, "nearly at the end", 0, 1)
		b.later(time.Second)
		b.see(t, "at the end", 0)
	})
}

// What the Northbound database has still to say of a VRF takes no VIP from it, nor the ways to
// its backends.
func TestVIPsWaitForNorthbound(t *testing.T) {
	eachFamily(t, func(t *testing.T, b *balanced) {
		b.serve(t, service{port: 80, backends: []int{0}})
		before := maps.Clone(b.vips.rows)
		b.restart()
		b.pending = 1001
		b.serve(t)
		b.later(2 * intent.FlowIdle)
		b.passes(t)
		if got := b.reached(t); len(before) != 1 || !maps.Equal(before, b.vips.rows) || len(got) != 1 {
			t.Errorf("VIPs %v, ways to %v", b.vips.rows, got)
		}
		b.pending = 0
		b.passes(t)
		if got := b.reached(t); len(b.vips.rows)+len(got) > 0 {
			t.Errorf("nothing more is to come: VIPs %v, ways to %v", b.vips.rows, got)
		}
	})
}

// No flow goes on without its gateway port or its VRF, on the kernel path, or where no VIP is.
func TestWaysGoWithWhatTheyNeed(t *testing.T) {
	one, other := intent.VRF{VNI: 1001, Index: 1}, intent.GatewayKey{Bridge: "br-ex", MAC: intent.MAC{2, 0, 0, 0, 0, 2}}
	for name, change := range map[string]func(*balanced){
		"gateway": func(b *balanced) {
			Of(b, intent.Gateways).Set(map[intent.GatewayKey]intent.Gateway{other: {Key: other, VNI: 1001}})
		},
		"VRF": func(b *balanced) { b.SetVRFs(nil) },
		"another VRF": func(b *balanced) {
			Of(b, intent.Gateways).Set(map[intent.GatewayKey]intent.Gateway{gw: {Key: gw, VNI: 1002}})
		},
		"path": func(b *balanced) {
			kernel := one
			kernel.Path = intent.PathKernel
			Of(b, intent.KernelVRFs).Set(map[intent.VNI]intent.KernelVRF{1001: {VNI: 1001, Index: 1}})
			Of(b, intent.KernelGateways).Set(map[intent.GatewayKey]intent.KernelGateway{gw: {Key: gw, VNI: 1001}})
			b.SetVRFs(map[intent.VNI]intent.VRF{1001: kernel})
		},
		"VIPs": func(b *balanced) { b.SetVIPs(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			eachFamily(t, func(t *testing.T, b *balanced) {
				b.serve(t, service{port: 80, backends: []int{0, 1}})
				b.serve(t, service{port: 80, backends: []int{0}})
				if got := b.reached(t); len(got) != 2 {
					t.Fatalf("ways to %v", got)
				}
				b.Pipeline.Update(func() { change(b) })
				for range 3 {
					b.passes(t)
				}
				if got := b.reached(t); slices.Contains(got, 1) {
					t.Errorf("ways to %v", got)
				}
			})
		})
	}
}

// Rows that linger are so few that they leave room to those that are wanted: of too many,
// those go that would go first.
func TestLingerIsBounded(t *testing.T) {
	if l := newLinger[int](0); l.most != mostLingering {
		t.Errorf("%d rows of a map without an end", l.most)
	}
	l, now := newLinger[int](40), time.Now()
	l.now = func() time.Time { return now }
	for i := range 25 {
		l.leave(i, false)
		now = now.Add(time.Second)
	}
	l.forget()
	kept := []int{}
	for i := range 30 {
		if l.keeps(i) {
			kept = append(kept, i)
		}
	}
	if want := []int{15, 16, 17, 18, 19, 20, 21, 22, 23, 24}; !slices.Equal(kept, want) {
		t.Errorf("kept %v, want %v", kept, want)
	}
	now = now.Add(intent.FlowIdle + lingerMemory)
	l.forget()
	if len(l.until) > 0 {
		t.Errorf("%v is not forgotten", fmt.Sprint(l.until))
	}
}
