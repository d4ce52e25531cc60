package bpf_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// A limit that shrinks below the highest row in use, or below what is in use,
// keeps nobody from starting: what runs stays, and nothing more is taken.
func TestLimitShrinks(t *testing.T) {
	dir := bpffs(t)
	big := ebpf.Limits{VRFs: 16, Gateways: 16, VTEPs: 16, Served: 16, Hosts: 256, Prefixes: 64, NextHops: 200, Groups: 16}
	d := load(t, ebpf.Config{Dir: dir, Node: node(), Limits: big})
	apply(t, d.VRFs(), map[intent.VNI]intent.VRF{red: {VNI: red, Index: 1}})
	host := func(i int) intent.Route {
		return remote(red, fmt.Sprintf("10.50.0.%d/32", i), hop(peer4, intent.VNI(7000+i)))
	}
	var keys []intent.RouteKey
	for i := range 150 {
		apply(t, d.Routes(), routes(host(i)))
		keys = append(keys, host(i).Key)
	}
	if errs := d.Routes().Delete(context.Background(), keys[:145]); errs != nil {
		t.Fatal(errs)
	}
	want := routes(host(145), host(146), host(147), host(148), host(149))
	d.Close()
	small := big
	small.NextHops, small.Hosts = 6, 3
	d = load(t, ebpf.Config{Dir: dir, Node: node(), Limits: small})
	wantList(t, d.Routes(), want)
	more := func(i int) error {
		r := host(i)
		errs := d.Routes().Apply(context.Background(), []reconcile.Row[intent.RouteKey, intent.Route]{{Key: r.Key, Value: r}})
		return errors.Join(errs...)
	}
	if err := more(1); err != nil {
		t.Errorf("the sixth of six next hops: %v", err)
	}
	if err := more(2); !errors.Is(err, ebpf.ErrFull) {
		t.Errorf("the seventh of six next hops: %v", err)
	}
}

// The counters of a VRF whose index is above a limit that shrank are still there.
func TestLimitOfVRFsShrinks(t *testing.T) {
	dir := bpffs(t)
	cfg := ebpf.Config{Dir: dir, Node: node(), Limits: ebpf.Limits{VRFs: 64, Gateways: 16, VTEPs: 16, Served: 64, Hosts: 256, Prefixes: 64, NextHops: 64, Groups: 16}}
	d := load(t, cfg)
	vrfs := map[intent.VNI]intent.VRF{red: {VNI: red, Index: 40}, blue: {VNI: blue, Index: 2}}
	apply(t, d.VRFs(), vrfs)
	apply(t, d.Gateways(), map[intent.GatewayKey]intent.Gateway{gw: gateways()[gw]})
	apply(t, d.Routes(), routes(local(red, "10.10.0.0/24", gw), remote(red, "10.20.0.0/24", hop(peer4, 5001))))
	forward := func() {
		t.Helper()
		redirected, _, _, err := tracer(t, dir).Run(fromOVN(out4("10.10.0.5", "10.20.0.9")), 1)
		if err != nil || !redirected {
			t.Fatalf("redirected %t, %v", redirected, err)
		}
	}
	forward()
	d.Close()
	cfg.Limits.VRFs = 4
	d = load(t, cfg)
	wantList(t, d.VRFs(), vrfs)
	forward()
	if sum, _ := counts(t, d); sum.Packets != 2 {
		t.Errorf("counted %d packets, want 2", sum.Packets)
	}
	// The limit of ICMP errors has its row as well.
	redirected, _, _, err := tracer(t, dir).Run(fromOVN(ttl(out4("10.10.0.5", "10.20.0.9"), 1)), 1)
	if err != nil || !redirected {
		t.Errorf("an ICMP error: sent %t, %v", redirected, err)
	}
}
