package programs

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// ownMAC is that of the loopback device, which test runs put packets on: what is for
// another is not looked at.
var ownMAC intent.MAC

// RunUnderlay measures underlay_in: for exposed addresses, and for what is the host's.
func RunUnderlay(ctx context.Context, dir string, rounds int) (out []Result, err error) {
	for _, routes := range []int{1, 1000, 100_000} {
		rows, err := underlay(ctx, filepath.Join(dir, fmt.Sprintf("underlay_%d", routes)), routes, rounds)
		if err != nil {
			return out, fmt.Errorf("underlay_in, %d exposed addresses: %w", routes, err)
		}
		out = append(out, rows...)
	}
	return out, nil
}

func underlay(ctx context.Context, dir string, routes, rounds int) (out []Result, err error) {
	d, err := load(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if err := expose(ctx, d, routes); err != nil {
		return nil, err
	}
	tr, err := ebpf.OpenTracer(dir, ebpf.Fabric)
	if err != nil {
		return nil, err
	}
	defer tr.Close()
	for _, miss := range []bool{true, false} {
		for _, family := range []int{4, 6} {
			timing, err := tr.Measure(ebpf.TraceRequest{Program: ebpf.UnderlayIn, Frame: fromUnderlay(family, miss)}, rounds)
			if err != nil {
				return nil, err
			}
			out = append(out, Result{Program: ebpf.UnderlayIn, Family: family, Host: true, Miss: miss, Routes: routes, VRFs: 1, Timing: timing})
		}
	}
	return out, nil
}

// fromUnderlay is a packet for the exposed address, or for the host.
func fromUnderlay(family int, miss bool) []byte {
	src, dst := far4, near4
	if family == 6 {
		src, dst = far6, near6
	}
	if miss {
		dst = src.Prev()
	}
	return frame(src, dst, far, ownMAC)
}

// expose fills the default VRF with addresses of both families.
func expose(ctx context.Context, d *ebpf.Dataplane, routes int) error {
	vrf := intent.VRF{VNI: intent.DefaultVRF, Index: 1}
	gateway := intent.Gateway{Key: gw, VNI: vrf.VNI, Kind: intent.GatewayPort}
	var rows []reconcile.Row[intent.RouteKey, intent.Route]
	add := func(a netip.Addr) {
		k := intent.NewHostKey(vrf.VNI, a)
		rows = append(rows, reconcile.Row[intent.RouteKey, intent.Route]{Key: k, Value: intent.Route{Key: k, Kind: intent.RouteLocal, Gateway: gw}})
	}
	add(near4)
	add(near6)
	for i := range routes - 1 {
		x, y, z := byte(i>>16), byte(i>>8), byte(i)
		add(netip.AddrFrom4([4]byte{11 + x, y, z, 1}))
		add(netip.AddrFrom16([16]byte{0xfd, 1, 0, x, y, z, 15: 1}))
	}
	return firstError(
		d.VRFs().Apply(ctx, []reconcile.Row[intent.VNI, intent.VRF]{{Key: vrf.VNI, Value: vrf}}),
		d.Gateways().Apply(ctx, []reconcile.Row[intent.GatewayKey, intent.Gateway]{{Key: gw, Value: gateway}}),
		d.Routes().Apply(ctx, rows))
}
