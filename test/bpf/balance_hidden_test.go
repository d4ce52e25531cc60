package bpf_test

import (
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// A backend whose network is not exposed gets what is balanced, and its answers are accepted:
// nothing else finds it, and nothing else is accepted from it. A restart changes nothing.
func TestBalanceHidden(t *testing.T) {
	dir := bpffs(t)
	d := balanced(t, dir)
	for _, c := range []struct {
		client, backend netip.Addr
		vip             netip.AddrPort
	}{
		{client4, addr("10.66.0.5"), netip.AddrPortFrom(vip4, 8000)},
		{client6, addr("fd00:66::5"), netip.AddrPortFrom(vip6, 8000)},
	} {
		backend, client := netip.AddrPortFrom(c.backend, 8080), netip.AddrPortFrom(c.client, clientPort)
		v := vip(intent.TCP, c.vip.Addr(), 8000, intent.Backend{Addr: c.backend, Port: 8080, Weight: 1})
		apply(t, d.VIPs(), vips(v))
		key := intent.NewHostKey(red, c.backend)
		tr := tracer(t, dir)
		dropped := func(in ebpf.TraceRequest, want drop.Reason) {
			t.Helper()
			res, err := tr.Trace(t.Context(), in)
			if err != nil || res.Dropped() != want {
				t.Errorf("dropped for %s, want %s (%v)", res.Dropped(), want, err)
			}
		}
		dropped(asked(intent.TCP, client, c.vip, "S"), drop.BackendAway)
		route := map[intent.RouteKey]intent.BackendRoute{key: {Key: key, Gateway: gw}}
		apply(t, d.BackendRoutes(), route)
		wantList(t, d.BackendRoutes(), route)
		if c.client.Is4() { // a start takes seconds
			tr.Close()
			d.Close()
			d = load(t, ebpf.Config{Dir: dir, Node: node()})
			tr = tracer(t, dir)
			wantList(t, d.BackendRoutes(), route)
		}
		if _, to := send(t, tr, asked(intent.TCP, client, c.vip, "S")); to != backend {
			t.Errorf("it goes to %s", to)
		}
		if from, to := send(t, tr, replied(intent.TCP, backend, client, "SA")); from != c.vip || to != client {
			t.Errorf("the answer is from %s to %s", from, to)
		}
		dropped(asked(intent.TCP, client, backend, "S"), drop.NoRoute)
		dropped(replied(intent.TCP, netip.AddrPortFrom(c.backend, 22), client, "SA"), drop.SourceNotExposed)
		dropped(replied(intent.TCP, backend, netip.AddrPortFrom(c.client, 9), "S"), drop.SourceNotExposed)
		if gone := d.BackendRoutes().Delete(t.Context(), []intent.RouteKey{key}); gone != nil {
			t.Error(gone)
		}
		dropped(replied(intent.TCP, backend, client, "A"), drop.SourceNotExposed)
		tr.Close()
	}
	wantList(t, d.BackendRoutes(), map[intent.RouteKey]intent.BackendRoute{})
}
