package bpf_test

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"testing"

	cilium "github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// TestLongestPrefix adds, changes and removes prefixes of many lengths in two
// VRFs with the same addresses, so many that they share rows of the front and
// that a VRF has more lengths than its row lists. Packets go where the longest
// prefix says, also after a restart and without the front.
func TestLongestPrefix(t *testing.T) {
	dir := bpffs(t)
	cfg := ebpf.Config{Dir: dir, Node: node(), Limits: ebpf.Limits{Hosts: 1000, Prefixes: 1500}}
	d := load(t, cfg)
	apply(t, d.VRFs(), map[intent.VNI]intent.VRF{red: {VNI: red, Index: 1}, blue: {VNI: blue, Index: 2}})
	apply(t, d.Gateways(), map[intent.GatewayKey]intent.Gateway{gw: gateways()[gw], blueGW: gateways()[blueGW]})
	w := prefixWorld{random: rand.New(rand.NewPCG(3, 4)), labels: map[intent.RouteKey]uint32{}}
	for _, few := range []bool{true, false, true} {
		for range 4 {
			w.change(t, d, few)
			w.check(t, dir)
		}
		d.Close()
		d = load(t, cfg)
		w.check(t, dir)
	}
	removeFront(t, dir)
	w.check(t, dir)
	var all []intent.RouteKey
	for k := range w.labels {
		all = append(all, k)
	}
	if errs := d.Routes().Delete(context.Background(), all); errs != nil {
		t.Fatal(errs)
	}
	w.labels = nil
	w.check(t, dir)
}

// prefixWorld is what the routes of the test should be: the label of each one's
// next hop. The sources of its packets have routes that do not change.
type prefixWorld struct {
	random *rand.Rand
	labels map[intent.RouteKey]uint32
}

// source is where packets of a VRF come from.
func source(six bool) netip.Addr {
	if six {
		return addr("fd00:10::5")
	}
	return addr("10.10.0.5")
}

// destination is an address of a space that is small enough for prefixes of
// every length to cover one another.
func (w *prefixWorld) destination(six bool) netip.Addr {
	x, y := byte(w.random.UintN(4)), byte(w.random.UintN(256))
	if six {
		return netip.AddrFrom16([16]byte{0: 0xfd, 3: 0x20, 7: x, 8: y, 15: byte(w.random.UintN(2))})
	}
	return netip.AddrFrom4([4]byte{10, 20, x, y})
}

func (w *prefixWorld) prefix(few bool) intent.RouteKey {
	six := w.random.UintN(2) == 0
	a := w.destination(six)
	lengths := []int{0, 1, 8, 12, 16, 20, 22, 23, 24, 25, 28, 31, 32}
	if six {
		lengths = []int{0, 3, 16, 32, 56, 60, 63, 64, 65, 72, 127, 128}
	}
	if few {
		lengths = lengths[len(lengths)-5:]
	}
	vni := []intent.VNI{red, blue}[w.random.UintN(2)]
	return intent.NewRouteKey(vni, netip.PrefixFrom(a, lengths[w.random.UintN(uint(len(lengths)))]))
}

// change applies one batch. With few, all that is there goes first.
func (w *prefixWorld) change(t *testing.T, d *ebpf.Dataplane, few bool) {
	t.Helper()
	batch := routes(local(red, "10.10.0.5/32", gw), local(red, "fd00:10::5/128", gw),
		local(blue, "10.10.0.5/32", blueGW), local(blue, "fd00:10::5/128", blueGW))
	var gone []intent.RouteKey
	for k := range w.labels {
		if few || w.random.UintN(3) == 0 {
			gone = append(gone, k)
			delete(w.labels, k)
		}
	}
	for range 200 {
		k := w.prefix(few)
		label := 1 + w.random.Uint32N(1000)
		w.labels[k] = label
		batch[k] = intent.Route{Key: k, Kind: intent.RouteRemote, NextHops: intent.NewNextHopSet(hop(peer4, intent.VNI(label)))}
	}
	if errs := d.Routes().Delete(context.Background(), gone); errs != nil {
		t.Fatal(errs)
	}
	apply(t, d.Routes(), batch)
}

// longest is the label of the longest prefix that holds the address, 0 for none.
func (w *prefixWorld) longest(vni intent.VNI, a netip.Addr) (label uint32) {
	best := -1
	for k, l := range w.labels {
		if k.VNI == vni && k.Prefix.Contains(a) && k.Prefix.Bits() > best {
			best, label = k.Prefix.Bits(), l
		}
	}
	return label
}

func (w *prefixWorld) check(t *testing.T, dir string) {
	t.Helper()
	tr := tracer(t, dir)
	for range 400 {
		six := w.random.UintN(2) == 0
		dst := w.destination(six)
		frame, src := out4, source(six)
		if six {
			frame = out6
		}
		for vni, from := range map[intent.VNI]intent.MAC{red: gwMAC, blue: blueMAC} {
			in := frame(src.String(), dst.String())
			copy(in[6:12], from[:])
			res, err := tr.Trace(context.Background(), fromOVN(in))
			if err != nil {
				t.Fatal(err)
			}
			if label, want := labelOf(res), w.longest(vni, dst); label != want {
				t.Fatalf("VRF %d, %s: label %d, want %d:\n%s", vni, dst, label, want, res)
			}
		}
	}
}

// removeFront makes all rows of the routes' front say nothing.
func removeFront(t *testing.T, dir string) {
	t.Helper()
	m, err := cilium.LoadPinnedMap(filepath.Join(dir, "route_front_v1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	nothing := make([]byte, m.ValueSize())
	for row := range m.MaxEntries() {
		if err := m.Put(row, nothing); err != nil {
			t.Fatal(err)
		}
	}
}
