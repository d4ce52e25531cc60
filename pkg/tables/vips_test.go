package tables

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

var errRefused = errors.New("refused")

func (b *balanced) address() intent.RouteKey { return intent.NewHostKey(1001, b.family.vip) }

func (b *balanced) isAnnounced() bool { _, yes := b.announced.rows[b.address()]; return yes }

// complete looks, whenever rows are written, whether there are ways to and from the backends
// that a VIP leads to, and the VIP when its address is routed: where the VIP is not new then,
// its flows count as another node's.
func (b *balanced) complete(t *testing.T) {
	look := func() {
		if r := b.routesThere.rows[b.address()]; r.VIP && len(b.vips.rows) == 0 {
			t.Errorf("route %s is there before its VIPs", r.Key)
		}
		for _, v := range b.vips.rows {
			for _, backend := range v.Backends.All() {
				n := slices.Index(b.backends[:], backend.Addr)
				_, to := b.backendRoutes.rows[intent.NewHostKey(1001, backend.Addr)]
				if _, from := b.flows.rows[b.answer(n)]; !to || !from {
					t.Errorf("VIP %s leads to %s: the way to it is there %t, that back %t", v.Key, backend, to, from)
				}
			}
		}
	}
	b.vips.after, b.backendRoutes.after, b.flows.after, b.routesThere.after = look, look, look, look
}

// fail has a backend's way fail, in one direction or the other; nil mends it.
func (b *balanced) fail(to bool, n int, err error) {
	k := intent.NewHostKey(1001, b.backends[n])
	b.Pipeline.Update(func() {
		if to {
			b.backendRoutes.fail, b.backendRoutes.failKey = err, k
			Of(b, intent.BackendRoutes).Touch(k)
		} else {
			b.flows.fail, b.flows.failKey = err, b.answer(n)
			Of(b, intent.SteeringFlows).Touch(b.answer(n))
		}
	})
}

// A VIP leads to a backend once there is a way to it and back, and stays as it was until then,
// with the ways that this takes.
func TestVIPsAwaitTheWaysToTheirBackends(t *testing.T) {
	for name, to := range map[string]bool{"to the backend": true, "of its answers": false} {
		t.Run(name, func(t *testing.T) {
			eachFamily(t, func(t *testing.T, b *balanced) {
				b.complete(t)
				one, two := service{port: 80, backends: []int{0}, flush: true}, service{port: 80, backends: []int{1}, flush: true}
				b.serve(t, one)
				key := b.vip(one).Key
				if b.vips.rows[key] != b.vip(one) || !b.isAnnounced() {
					t.Fatalf("VIP %+v, announced %t", b.vips.rows[key], b.isAnnounced())
				}
				b.fail(to, 1, errRefused)
				b.serve(t, two)
				if b.vips.rows[key] != b.vip(one) || !b.isAnnounced() {
					t.Errorf("VIP %+v, announced %t", b.vips.rows[key], b.isAnnounced())
				}
				if ok, err := Of(b, intent.VIPs).State(key); ok || !errors.Is(err, reconcile.ErrNotReady) {
					t.Errorf("the VIP's state is %t, %v", ok, err)
				}
				b.fail(to, 1, nil)
				b.passes(t)
				if b.vips.rows[key] != b.vip(two) || !b.isAnnounced() {
					t.Errorf("mended: VIP %+v, announced %t", b.vips.rows[key], b.isAnnounced())
				}
				b.see(t, "mended", 1)
				b.serve(t)
				b.see(t, "without VIPs")
			})
		})
	}
}

// A VIP that leads to a backend goes on to change when the way there is lost.
func TestVIPsDoNotAwaitWhereTheyLead(t *testing.T) {
	eachFamily(t, func(t *testing.T, b *balanced) {
		b.serve(t, service{port: 80, backends: []int{0, 1, 2}})
		clear(b.flows.rows)
		b.Pipeline.RelistAll()
		b.fail(false, 1, errRefused)
		next := service{port: 80, backends: []int{0, 1}}
		b.serve(t, next)
		if v := b.vip(next); b.vips.rows[v.Key] != v {
			t.Errorf("VIP %+v", b.vips.rows[v.Key])
		}
	})
}

// An address that nothing but VIPs has is announced once one of them is served.
func TestVIPsAreServedThenAnnounced(t *testing.T) {
	for _, to := range []bool{true, false} {
		eachFamily(t, func(t *testing.T, b *balanced) {
			b.fail(to, 1, errRefused)
			waits := service{port: 80, backends: []int{0, 1}}
			b.serve(t, waits)
			if len(b.vips.rows) > 0 || b.isAnnounced() {
				t.Errorf("VIPs %v, announced %t", b.vips.rows, b.isAnnounced())
			}
			if _, err := Of(b, intent.Announcements).State(b.address()); err == nil || !strings.Contains(err.Error(), b.backends[1].String()) && !strings.Contains(err.Error(), "VIP") {
				t.Errorf("the announcement waits: %v", err)
			}
			b.serve(t, waits, service{port: 81, backends: []int{2}})
			if !b.isAnnounced() {
				t.Error("not announced, though another VIP of the address is served")
			}
			b.serve(t, waits)
			if b.isAnnounced() {
				t.Error("announced still")
			}
			b.fail(to, 1, nil)
			b.passes(t)
			if !b.isAnnounced() || len(b.vips.rows) != 1 {
				t.Errorf("mended: VIPs %v, announced %t", b.vips.rows, b.isAnnounced())
			}
			// Another VIP that waits takes nothing from the one that is there.
			b.announced.after = func() { t.Errorf("announced %t", b.isAnnounced()) }
			b.fail(to, 2, errRefused)
			b.serve(t, waits, service{port: 81, backends: []int{2}})
			b.serve(t, waits)
			b.announced.after = nil
			// The way of one that is served may be lost.
			clear(b.backendRoutes.rows)
			clear(b.flows.rows)
			b.fail(to, 1, errRefused)
			b.Pipeline.RelistAll()
			b.passes(t)
			if b.isAnnounced() {
				t.Error("announced, though answers of a backend do not come back")
			}
		})
	}
}

// The row of a VIP that comes opens the gate of its address, and that of the last one that goes
// closes it.
func TestVIPsOpenTheGateOfTheirAddress(t *testing.T) {
	eachFamily(t, func(t *testing.T, b *balanced) {
		s := service{port: 80, backends: []int{0}}
		b.vips.fail = fmt.Errorf("%w for something", reconcile.ErrNotReady)
		b.serve(t, s)
		if b.isAnnounced() {
			t.Error("announced")
		}
		b.vips.fail = nil
		b.Pipeline.Update(func() { Of(b, intent.VIPs).Touch(b.vip(s).Key) })
		b.passes(t)
		if !b.isAnnounced() {
			t.Error("not announced")
		}
		b.Pipeline.Update(func() { b.SetVIPs(nil) })
		b.passes(t)
		if b.isAnnounced() {
			t.Error("announced without a VIP")
		}
	})
}

// Where a VIP was before the gateway port, it is announced once there are ways.
func TestVIPsOfAGatewayPortThatComesAwaitTheirWays(t *testing.T) {
	for _, to := range []bool{true, false} {
		eachFamily(t, func(t *testing.T, b *balanced) {
			s := service{port: 80, backends: []int{0, 1}}
			v := b.vip(s)
			b.Pipeline.Update(func() { b.SetVIPs(map[intent.VIPKey]intent.VIP{v.Key: v}) })
			b.passes(t)
			if len(b.vips.rows) != 1 {
				t.Fatal("no VIP on the node where the gateway port may come to")
			}
			b.fail(to, 1, errRefused)
			b.serve(t, s)
			if b.isAnnounced() {
				t.Error("announced")
			}
			b.fail(to, 1, nil)
			b.passes(t)
			if !b.isAnnounced() {
				t.Error("not announced after it was mended")
			}
		})
	}
}

// What OVN serves waits for no row; nor does what it does since a row is refused.
func TestVIPsOfOVNAreAnnounced(t *testing.T) {
	waits := fmt.Errorf("%w for something", reconcile.ErrNotReady)
	for _, tt := range []struct {
		name string
		service
		err error
	}{
		{"the row waits", service{port: 80, ovn: true}, waits},
		{"the row is refused", service{port: 80, ovn: true}, errRefused},
		{"the map is full", service{port: 80, backends: []int{0}}, syscall.E2BIG},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachFamily(t, func(t *testing.T, b *balanced) {
				b.vips.fail = tt.err
				b.serve(t, tt.service)
				if len(b.vips.rows) > 0 || !b.isAnnounced() {
					t.Errorf("VIPs %v, announced %t", b.vips.rows, b.isAnnounced())
				}
			})
		})
	}
}

// An address that is somebody's own does not hang on its VIPs.
func TestOwnAddressesAreAnnouncedWithoutTheirVIPs(t *testing.T) {
	eachFamily(t, func(t *testing.T, b *balanced) {
		b.fail(false, 0, errRefused)
		b.serve(t, service{port: 80, backends: []int{0}})
		b.Pipeline.Update(func() {
			Of(b, intent.Announcements).Update(map[intent.RouteKey]intent.Announcement{b.address(): {Key: b.address(), Gateway: gw}}, nil)
		})
		b.passes(t)
		if !b.isAnnounced() {
			t.Error("not announced")
		}
	})
}

// On the kernel path OVN balances.
func TestVIPsOnTheKernelPathAreAnnounced(t *testing.T) {
	eachFamily(t, func(t *testing.T, b *balanced) {
		b.vips.fail = errRefused
		b.serve(t, service{port: 80, ovn: true})
		kernel := func() {
			Of(b, intent.KernelVRFs).Set(map[intent.VNI]intent.KernelVRF{1001: {VNI: 1001, Index: 1}})
			Of(b, intent.KernelGateways).Set(map[intent.GatewayKey]intent.KernelGateway{gw: {Key: gw, VNI: 1001}})
			b.SetVRFs(map[intent.VNI]intent.VRF{1001: {VNI: 1001, Index: 1, Path: intent.PathKernel}})
		}
		b.Pipeline.Update(kernel)
		for range 3 {
			b.passes(t)
		}
		if p, ok := b.Path(1001); p != intent.PathKernel || !ok || !b.isAnnounced() {
			t.Errorf("path %s, %t; announced %t", p, ok, b.isAnnounced())
		}
	})
}

// Whatever the order of changes, the index of VIPs is that of the wanted ones.
func TestVIPsAreKnownByTheirAddress(t *testing.T) {
	eachFamily(t, func(t *testing.T, b *balanced) {
		one, two := b.vip(service{port: 80}), b.vip(service{port: 81})
		at := func() (n int) {
			b.Pipeline.View(func() { n = len(b.ways.at[b.address()]) })
			return n
		}
		set := func(vips ...intent.VIP) map[intent.VIPKey]intent.VIP {
			out := map[intent.VIPKey]intent.VIP{}
			for _, v := range vips {
				out[v.Key] = v
			}
			return out
		}
		for i, step := range []struct {
			change func()
			want   int
		}{
			{func() { b.UpdateVIPs(set(one), nil) }, 1},
			{func() { b.UpdateVIPs(set(one, two), []intent.VIPKey{one.Key}) }, 2},
			{func() { b.UpdateVIPs(nil, []intent.VIPKey{one.Key, one.Key}) }, 1},
			{func() { b.SetVIPs(set(one)) }, 1},
			{func() { b.SetVIPs(nil) }, 0},
		} {
			b.Pipeline.Update(step.change)
			if got, all := at(), len(b.ways.at)+len(b.ways.vips); got != step.want || (all == 0) != (step.want == 0) {
				t.Errorf("step %d: %d VIPs of the address, want %d; %v", i, got, step.want, maps.Clone(b.ways.vips))
			}
		}
	})
}
