package ovnroutes_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/ovnroutes"
	"github.com/ovn-sluice/sluice/controlplane/rib"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

type learners = wanted.Delta[intent.GatewayKey, intent.Learner]
type kernelVRFs = wanted.Delta[intent.VNI, intent.KernelVRF]

// world is a translation and the rows that it has asked for.
type world struct {
	*ovnroutes.Join
	rib  *rib.RIB
	rows map[intent.LearnedKey]intent.LearnedRoute
}

func newWorld() *world {
	r := rib.New()
	return &world{ovnroutes.New(r), r, map[intent.LearnedKey]intent.LearnedRoute{}}
}

func (w *world) take(d ovnroutes.Rows) {
	for _, k := range d.Delete {
		delete(w.rows, k)
	}
	maps.Copy(w.rows, d.Set)
}

func (w *world) change(l learners, k kernelVRFs) *world { w.take(w.Change(l, k)); return w }

func key(vni intent.VNI, prefix string) intent.RouteKey {
	return intent.NewRouteKey(vni, netip.MustParsePrefix(prefix))
}

// put changes the routes of a source; one that begins with - goes.
func (w *world) put(s rib.Source, vni intent.VNI, prefixes ...string) *world {
	set := map[intent.RouteKey]intent.Route{}
	var keys, gone []intent.RouteKey
	for _, p := range prefixes {
		if p, cut := strings.CutPrefix(p, "-"); cut {
			gone = append(gone, key(vni, p))
		} else {
			set[key(vni, p)] = intent.Route{Key: key(vni, p), Kind: intent.RouteRemote}
			keys = append(keys, key(vni, p))
		}
	}
	w.rib.Update(s, set, gone)
	w.take(w.Touch(keys, gone))
	return w
}

func (w *world) list() []string {
	var out []string
	for k, r := range w.rows {
		if r.Key != k {
			out = append(out, fmt.Sprintf("%s has the key %s", r.Key, k))
		}
		out = append(out, fmt.Sprintf("%d %s via %s", k.Table, k.Prefix, r.Via))
	}
	slices.Sort(out)
	return out
}

// router is a learner with both families on 172.24.0.0/24 and fd00:24::/64.
func router(n byte, vni intent.VNI, table uint32) intent.Learner {
	return intent.Learner{
		Gateway: intent.GatewayKey{Bridge: "br-ex", MAC: intent.MAC{2, 0, 0, 0, 0, n}}, Port: fmt.Sprintf("cr-%d", n), VNI: vni, Table: table,
		Via4: netip.AddrFrom4([4]byte{172, 24, 0, n}), Via6: netip.MustParseAddr(fmt.Sprintf("fd00:24::%x", n)),
		Networks: intent.NewPrefixSet(netip.MustParsePrefix("172.24.0.0/24"), netip.MustParsePrefix("fd00:24::/64"), netip.MustParsePrefix("10.10.0.0/24")),
	}
}

func some(list ...intent.Learner) learners {
	d := learners{Set: map[intent.GatewayKey]intent.Learner{}}
	for _, l := range list {
		d.Set[l.Gateway] = l
	}
	return d
}

func onKernel(vnis ...intent.VNI) kernelVRFs {
	d := kernelVRFs{Set: map[intent.VNI]intent.KernelVRF{}}
	for _, v := range vnis {
		d.Set[v] = intent.KernelVRF{VNI: v}
	}
	return d
}

func TestRows(t *testing.T) {
	none := kernelVRFs{}
	only4 := router(1, 1001, 7)
	only4.Via6 = netip.Addr{}
	for name, row := range map[string]struct {
		do   func(*world)
		want []string
		errs []string
	}{
		"no learner": {do: func(w *world) { w.put(rib.BGP, 1001, "10.20.0.0/24") }},
		"both families": {do: func(w *world) {
			w.change(some(router(1, 1001, 7)), none).put(rib.BGP, 1001, "10.20.0.0/24", "fd00:20::/64")
		},
			want: []string{"7 10.20.0.0/24 via 172.24.0.1", "7 fd00:20::/64 via fd00:24::1"}},
		"a learner that comes later": {do: func(w *world) { w.put(rib.BGP, 1001, "10.20.0.0/24").change(some(router(1, 1001, 7)), none) },
			want: []string{"7 10.20.0.0/24 via 172.24.0.1"}},
		"default routes": {do: func(w *world) { w.change(some(router(1, 1001, 7)), none).put(rib.BGP, 1001, "0.0.0.0/0", "::/0") },
			want: []string{"7 0.0.0.0/0 via 172.24.0.1", "7 ::/0 via fd00:24::1"}},
		"one family": {do: func(w *world) { w.change(some(only4), none).put(rib.BGP, 1001, "10.20.0.0/24", "fd00:20::/64") },
			want: []string{"7 10.20.0.0/24 via 172.24.0.1"}},
		"another VRF": {do: func(w *world) { w.change(some(router(1, 1001, 7)), none).put(rib.BGP, 1002, "10.20.0.0/24") }},
		"two routers of a VRF": {do: func(w *world) {
			w.change(some(router(1, 1001, 7), router(2, 1001, 8)), none).put(rib.BGP, 1001, "10.20.0.0/24")
		}, want: []string{"7 10.20.0.0/24 via 172.24.0.1", "8 10.20.0.0/24 via 172.24.0.2"}},
		"parts of the router's networks": {do: func(w *world) {
			w.change(some(router(1, 1001, 7)), none).put(rib.BGP, 1001, "10.10.0.0/24", "10.10.0.5/32", "172.24.0.9/32", "fd00:24::9/128", "10.0.0.0/8")
		}, want: []string{"7 10.0.0.0/8 via 172.24.0.1"}},
		"what OVN takes for none": {do: func(w *world) {
			w.change(some(router(1, 1001, 7)), none).put(rib.BGP, 1001, "169.254.0.0/16", "fe80::/64", "ff02::/16", "224.0.0.0/4", "127.0.0.0/8")
		}},
		"withdrawn": {do: func(w *world) {
			w.change(some(router(1, 1001, 7)), none).put(rib.BGP, 1001, "10.20.0.0/24", "10.30.0.0/24").put(rib.BGP, 1001, "-10.20.0.0/24")
		}, want: []string{"7 10.30.0.0/24 via 172.24.0.1"}},
		"local here": {do: func(w *world) {
			w.change(some(router(1, 1001, 7)), none).put(rib.BGP, 1001, "10.20.0.0/24", "10.30.0.0/24").put(rib.OVN, 1001, "10.20.0.0/24", "10.30.0.0/24").put(rib.OVN, 1001, "-10.30.0.0/24")
		}, want: []string{"7 10.30.0.0/24 via 172.24.0.1"}},
		"a learner that goes": {do: func(w *world) {
			w.change(some(router(1, 1001, 7)), none).put(rib.BGP, 1001, "10.20.0.0/24")
			w.change(learners{Delete: []intent.GatewayKey{router(1, 0, 0).Gateway}}, none)
		}},
		"another table and next hop": {do: func(w *world) {
			w.change(some(router(1, 1001, 7)), none).put(rib.BGP, 1001, "10.20.0.0/24", "fd00:20::/64")
			l := router(1, 1001, 9)
			l.Via4 = netip.MustParseAddr("172.24.0.200")
			w.change(some(l), none)
		}, want: []string{"9 10.20.0.0/24 via 172.24.0.200", "9 fd00:20::/64 via fd00:24::1"}},
		"another VNI": {do: func(w *world) {
			w.change(some(router(1, 1001, 7)), none).put(rib.BGP, 1001, "10.20.0.0/24").put(rib.BGP, 1002, "10.30.0.0/24").change(some(router(1, 1002, 7)), none)
		}, want: []string{"7 10.30.0.0/24 via 172.24.0.1"}},
		"one table for two": {do: func(w *world) {
			w.change(some(router(1, 1001, 7), router(2, 1002, 7), router(3, 1001, 8)), none).put(rib.BGP, 1001, "10.20.0.0/24")
		}, want: []string{"8 10.20.0.0/24 via 172.24.0.3"}, errs: []string{"cr-1", "cr-2"}},
		"one table for two no more": {do: func(w *world) {
			w.change(some(router(1, 1001, 7), router(2, 1002, 7)), none).put(rib.BGP, 1001, "10.20.0.0/24").change(some(router(2, 1002, 8)), none)
		}, want: []string{"7 10.20.0.0/24 via 172.24.0.1"}},
		"the table of another VRF": {do: func(w *world) {
			w.change(some(router(1, 1001, 1002), router(2, 1001, 8)), onKernel(1002)).put(rib.BGP, 1001, "10.20.0.0/24")
		}, want: []string{"8 10.20.0.0/24 via 172.24.0.2"}, errs: []string{"cr-1"}},
		"the table of its own VRF": {do: func(w *world) {
			w.change(some(router(1, 1001, 1001)), onKernel(1001)).put(rib.BGP, 1001, "10.20.0.0/24")
		}},
		"a VRF that comes to the kernel path": {do: func(w *world) {
			w.change(some(router(1, 1001, 1002)), none).put(rib.BGP, 1001, "10.20.0.0/24").change(learners{}, onKernel(1002))
		}, errs: []string{"cr-1"}},
		"a VRF that leaves it": {do: func(w *world) {
			w.change(some(router(1, 1001, 1002)), onKernel(1002)).put(rib.BGP, 1001, "10.20.0.0/24").change(learners{}, kernelVRFs{Delete: []intent.VNI{1002}})
		}, want: []string{"1002 10.20.0.0/24 via 172.24.0.1"}},
		"a VRF that was there before": {do: func(w *world) {
			w.change(learners{}, onKernel(1002)).change(some(router(1, 1001, 1002)), none).put(rib.BGP, 1001, "10.20.0.0/24")
		}, errs: []string{"cr-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			row.do(w)
			if got := w.list(); !slices.Equal(got, row.want) {
				t.Errorf("rows %q, want %q", got, row.want)
			}
			var errs []string
			for _, o := range w.Objects() {
				if errs = append(errs, o.Key); o.Reason != reason.OVNTable || o.Kind != "gateway" {
					t.Errorf("object %+v", o)
				}
			}
			if !slices.Equal(errs, row.errs) {
				t.Errorf("errors of %q, want %q", errs, row.errs)
			}
		})
	}
}

// TestStepsAddUp: any order of changes leads to what one translation of the end makes.
func TestStepsAddUp(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newWorld()
		all, kernel := map[intent.GatewayKey]intent.Learner{}, map[intent.VNI]intent.KernelVRF{}
		for range 40 {
			vni, prefix := intent.VNI(1+r.IntN(3)), fmt.Sprintf("10.%d.0.0/%d", 9+r.IntN(4), 16+8*r.IntN(2))
			switch l := router(byte(1+r.IntN(3)), vni, uint32(1+r.IntN(4))); r.IntN(6) {
			case 0:
				all[l.Gateway] = l
				w.change(some(l), kernelVRFs{})
			case 1:
				delete(all, l.Gateway)
				w.change(learners{Delete: []intent.GatewayKey{l.Gateway}}, kernelVRFs{})
			case 2:
				kernel[vni] = intent.KernelVRF{VNI: vni}
				w.change(learners{}, onKernel(vni))
			case 3:
				delete(kernel, vni)
				w.change(learners{}, kernelVRFs{Delete: []intent.VNI{vni}})
			case 4:
				w.put(rib.Source(r.IntN(2)), vni, prefix)
			case 5:
				w.put(rib.Source(r.IntN(2)), vni, "-"+prefix)
			}
		}
		fresh := ovnroutes.New(w.rib).Change(learners{Set: all}, kernelVRFs{Set: kernel}).Set
		if !maps.Equal(w.rows, fresh) {
			t.Fatalf("seed %d: steps made %v, one translation %v", seed, w.rows, fresh)
		}
	}
}
