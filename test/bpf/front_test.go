package bpf_test

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// TestFrontOfHosts adds, changes and removes so many hosts that they share rows of
// the front. Packets go where the hash map says, also after a restart with
// another size.
func TestFrontOfHosts(t *testing.T) {
	dir := bpffs(t)
	limits := ebpf.Limits{Hosts: 3900, Prefixes: 64} // 1,024 rows of the front
	d := load(t, ebpf.Config{Dir: dir, Node: node(), Limits: limits})
	apply(t, d.VRFs(), map[intent.VNI]intent.VRF{red: {VNI: red, Index: 1}})
	apply(t, d.Gateways(), map[intent.GatewayKey]intent.Gateway{gw: gateways()[gw]})
	apply(t, d.Routes(), routes(local(red, "10.10.0.5/32", gw), remote(red, "10.20.0.0/16", hop(peer4, 5001))))

	random := rand.New(rand.NewPCG(1, 2))
	hosts := map[netip.Addr]uint32{} // by label of the next hop
	for range 20 {
		batch := map[intent.RouteKey]intent.Route{}
		var gone []intent.RouteKey
		for range 150 {
			a := netip.AddrFrom4([4]byte{10, 20, byte(random.UintN(8)), byte(random.UintN(256))})
			k := intent.NewHostKey(red, a)
			if _, had := hosts[a]; had && random.UintN(2) == 0 && batch[k] == (intent.Route{}) {
				gone = append(gone, k)
				delete(hosts, a)
				continue
			}
			hosts[a] = 6000 + random.Uint32N(5)
			batch[k] = intent.Route{Key: k, Kind: intent.RouteRemote, NextHops: intent.NewNextHopSet(hop(peer4, intent.VNI(hosts[a])))}
		}
		for _, err := range d.Routes().Delete(context.Background(), gone) {
			if err != nil {
				t.Fatal(err)
			}
		}
		apply(t, d.Routes(), batch)
	}
	checkHosts(t, dir, hosts)
	for _, size := range []uint32{3900, 100_000} {
		d.Close()
		d = load(t, ebpf.Config{Dir: dir, Node: node(), Limits: ebpf.Limits{Hosts: size, Prefixes: 64}})
		checkHosts(t, dir, hosts)
	}
	for a := range hosts {
		if errs := d.Routes().Delete(context.Background(), []intent.RouteKey{intent.NewHostKey(red, a)}); errs != nil {
			t.Fatal(errs)
		}
	}
	checkHosts(t, dir, nil)
}

func checkHosts(t *testing.T, dir string, hosts map[netip.Addr]uint32) {
	t.Helper()
	tr := tracer(t, dir)
	for third := range 8 {
		for fourth := range 256 {
			a := netip.AddrFrom4([4]byte{10, 20, byte(third), byte(fourth)})
			res, err := tr.Trace(context.Background(), fromOVN(out4("10.10.0.5", a.String())))
			if err != nil {
				t.Fatal(err)
			}
			label, kind := uint32(5001), ebpf.StepPrefix
			if l, ok := hosts[a]; ok {
				label, kind = l, ebpf.StepHost
			}
			found := false
			for i, s := range res.Steps {
				found = found || s.What == ebpf.StepNextHop && s.Value == label && res.Steps[i-1].What == kind
			}
			if !found {
				t.Fatalf("%s, want %s to label %d:\n%s", a, kind, label, res)
			}
		}
	}
}
