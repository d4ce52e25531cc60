package bpf_test

import (
	"context"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// TestPrefixCache runs packets before and after each change of the prefixes: what
// the programs remember of them never outlives the change.
func TestPrefixCache(t *testing.T) {
	dir := bpffs(t)
	d := load(t, ebpf.Config{Dir: dir, Node: node()})
	tr := tracer(t, dir)
	apply(t, d.VRFs(), map[intent.VNI]intent.VRF{red: {VNI: red, Index: 1}})
	apply(t, d.Gateways(), map[intent.GatewayKey]intent.Gateway{gw: gateways()[gw]})
	apply(t, d.Routes(), routes(local(red, "10.10.0.0/24", gw), local(red, "fd00:10::/64", gw)))

	put := func(p string, label intent.VNI) func() {
		return func() { apply(t, d.Routes(), routes(remote(red, p, hop(peer4, label)))) }
	}
	remove := func(p string) func() {
		return func() {
			if errs := d.Routes().Delete(context.Background(), []intent.RouteKey{intent.NewRouteKey(red, prefix(p))}); errs != nil {
				t.Fatal(errs)
			}
		}
	}
	restart := func() {
		d.Close()
		d = load(t, ebpf.Config{Dir: dir, Node: node()})
	}
	for _, step := range []struct {
		name   string
		change func()
		four   uint32 // label for the IPv4 packet, 0 for none
		six    uint32
	}{
		{"nothing", func() {}, 0, 0},
		{"add", put("10.20.0.0/16", 5001), 5001, 0},
		{"add 6", put("fd00:20::/32", 5011), 5001, 5011},
		{"change", put("10.20.0.0/16", 5002), 5002, 5011},
		{"longer", put("10.20.0.0/24", 5003), 5003, 5011},
		{"longer 6", put("fd00:20::/64", 5013), 5003, 5013},
		{"host", put("10.20.0.9/32", 5004), 5004, 5013},
		{"restart", restart, 5004, 5013},
		{"no host", remove("10.20.0.9/32"), 5003, 5013},
		{"shorter", remove("10.20.0.0/24"), 5002, 5013},
		{"shorter 6", remove("fd00:20::/64"), 5002, 5011},
		{"no 6", remove("fd00:20::/32"), 5002, 0},
		{"none", remove("10.20.0.0/16"), 0, 0},
	} {
		step.change()
		for _, p := range []struct {
			frame []byte
			label uint32
		}{{out4("10.10.0.5", "10.20.0.9"), step.four}, {out6("fd00:10::5", "fd00:20::9"), step.six}} {
			in := fromOVN(p.frame)
			// Before and after the programs have seen the packet.
			for range 2 {
				res, err := tr.Trace(context.Background(), in)
				if err != nil {
					t.Fatal(err)
				}
				if label := labelOf(res); label != p.label {
					t.Fatalf("%s: label %d, want %d:\n%s", step.name, label, p.label, res)
				}
				if _, _, _, err := tr.Run(in, 1); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
