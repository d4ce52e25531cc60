package ovs_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

type table = map[intent.SteeringKey]intent.Steering

var gatewayMAC, nextHopMAC = intent.MAC{2, 0, 0, 0, 0, 1}, intent.MAC{2, 0, 0, 0, 0, 2}

func rowsOf(bridge string, vlan uint16) table {
	gw := intent.GatewayKey{Bridge: intent.BridgeKey(bridge), VLAN: vlan, MAC: gatewayMAC}
	out := table{}
	for _, r := range []struct {
		kind   intent.SteeringKind
		prefix string
	}{
		{intent.SteerToOVN, ""},
		{intent.SteerARP, "192.0.2.1/32"}, {intent.SteerARP, "0.0.0.0/0"},
		{intent.SteerND, "2001:db8::1/128"}, {intent.SteerND, "fe80::/10"},
		{intent.SteerSource, "10.10.0.0/24"}, {intent.SteerSource, "0.0.0.0/0"},
		{intent.SteerSource, "2001:db8:10::/64"}, {intent.SteerSource, "::/0"},
		{intent.SteerRouted, "192.0.2.7/32"}, {intent.SteerRouted, "2001:db8::7/128"},
	} {
		k := intent.SteeringKey{Gateway: gw, Kind: r.kind}
		if r.prefix != "" {
			k.Prefix = netip.MustParsePrefix(r.prefix)
		}
		v := intent.Steering{Key: k, Localnet: "provnet-4711-0815"}
		if r.kind == intent.SteerSource || r.kind == intent.SteerRouted {
			v.NextHopMAC = nextHopMAC
		}
		out[k] = v
	}
	for _, p := range []intent.Protocol{intent.TCP, intent.UDP, intent.SCTP} {
		for _, prefix := range []string{"10.11.0.5/32", "2001:db8:11::5/128"} {
			for _, port := range []uint16{0, 8080} {
				k := intent.SteeringKey{Gateway: gw, Kind: intent.SteerAnswer, Prefix: netip.MustParsePrefix(prefix), Protocol: p, Port: port}
				out[k] = intent.Steering{Key: k, Localnet: "provnet-4711-0815", NextHopMAC: nextHopMAC}
			}
		}
	}
	return out
}

func (n *node) apply(d *ovs.Steering, want table) {
	n.t.Helper()
	var rows []reconcile.Row[intent.SteeringKey, intent.Steering]
	for k, v := range want {
		rows = append(rows, reconcile.Row[intent.SteeringKey, intent.Steering]{Key: k, Value: v})
	}
	if errs := d.Apply(context.Background(), rows); errs != nil {
		n.t.Fatalf("apply: %v", errors.Join(errs...))
	}
}

func (n *node) list(d *ovs.Steering) table {
	n.t.Helper()
	got, err := d.List(context.Background())
	if err != nil {
		n.t.Fatalf("list: %v", err)
	}
	return got
}

func (n *node) ensure() {
	n.t.Helper()
	if err := n.sw.EnsurePort(context.Background(), "br-ex", "sluice0-ovs"); err != nil {
		n.t.Fatal(err)
	}
}

func TestSteering(t *testing.T) {
	n := newNode(t)
	ctx := context.Background()
	d := ovs.NewSteering(n.sw)
	row := rowsOf("br-ex", 0)
	for k, v := range row {
		errs := d.Apply(ctx, []reconcile.Row[intent.SteeringKey, intent.Steering]{{Key: k, Value: v}})
		if len(errs) != 1 || !errors.Is(errs[0], reconcile.ErrNotReady) {
			t.Fatalf("without a port of ours: %v", errs)
		}
		break
	}
	n.ensure()
	n.run(`ovs-ofctl add-flow unix:` + n.path("br-ex.mgmt") + ` "cookie=0x77,priority=200,in_port=1,dl_src=02:00:00:00:00:09,actions=drop"`)
	foreign := func() {
		t.Helper()
		for _, want := range []string{"cookie=0x77", "priority=0 actions=NORMAL"} {
			if !strings.Contains(n.dump(), want) {
				t.Fatalf("foreign flow %s is gone: %s", want, n.dump())
			}
		}
	}

	want := rowsOf("br-ex", 0)
	for k, v := range rowsOf("br-ex", 100) {
		want[k] = v
	}
	n.apply(d, want)
	if diff := cmp.Diff(want, n.list(d), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Fatalf("written and read back (-want +got):\n%s\n%s", diff, n.dump())
	}
	before := n.dump()
	n.apply(d, want)
	if n.dump() != before {
		t.Fatal("applying again changed flows")
	}

	// Another next-hop MAC replaces, it does not add.
	for k, v := range want {
		if k.Kind == intent.SteerSource || k.Kind == intent.SteerRouted || k.Kind == intent.SteerAnswer {
			v.NextHopMAC[5] = 9
			want[k] = v
		}
	}
	n.apply(d, want)
	if diff := cmp.Diff(want, n.list(d), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Fatalf("after an update (-want +got):\n%s", diff)
	}
	if a, b := strings.Count(before, "\n"), strings.Count(n.dump(), "\n"); a != b {
		t.Fatalf("%d lines became %d", a, b)
	}
	foreign()

	var keys []intent.SteeringKey
	for k := range want {
		keys = append(keys, k)
	}
	if errs := d.Delete(ctx, append(keys, intent.SteeringKey{Gateway: intent.GatewayKey{Bridge: "br-none"}})); errs != nil {
		t.Fatal(errs)
	}
	if got := n.list(d); len(got) != 0 {
		t.Fatalf("left after deletion: %v", got)
	}
	foreign()
}

// One row that cannot be written stops no other.
func TestBadRow(t *testing.T) {
	n := newNode(t)
	n.ensure()
	good := intent.SteeringKey{Gateway: intent.GatewayKey{Bridge: "br-ex", MAC: gatewayMAC}, Kind: intent.SteerToOVN}
	bad := good
	bad.Gateway.VLAN, bad.Kind = 4096, intent.SteerARP
	d := ovs.NewSteering(n.sw)
	errs := d.Apply(context.Background(), []reconcile.Row[intent.SteeringKey, intent.Steering]{
		{Key: bad, Value: intent.Steering{Key: bad, Localnet: "provnet-4711-0815"}},
		{Key: good, Value: intent.Steering{Key: good, Localnet: "provnet-4711-0815"}},
	})
	if len(errs) != 2 || errs[0] == nil || errs[1] != nil {
		t.Fatalf("errors: %v", errs)
	}
	if got := n.list(d); len(got) != 1 || got[good].Key != good {
		t.Fatalf("listed %v", got)
	}
}

// A port that got another number is a difference, and applying repairs it.
func TestRenumberedPort(t *testing.T) {
	n := newNode(t)
	n.ensure()
	d := ovs.NewSteering(n.sw)
	want := rowsOf("br-ex", 0)
	n.apply(d, want)
	lines := strings.Count(n.dump(), "\n")
	n.run("ovs-vsctl set interface " + patchPort + " ofport_request=77")
	n.until("the new number shows", func() bool {
		for _, v := range n.list(d) {
			if v != (intent.Steering{}) {
				return false
			}
		}
		return true
	})
	n.apply(d, want)
	if diff := cmp.Diff(want, n.list(d), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if got := strings.Count(n.dump(), "\n"); got != lines {
		t.Fatalf("%d lines, want %d: %s", got, lines, n.dump())
	}
}

// Ovs-vswitchd is killed and started: Changes tells, and what it leads to puts
// everything back. The same when somebody deletes the flows.
func TestRestored(t *testing.T) {
	n := newNode(t)
	ctx := context.Background()
	n.ensure()
	d := ovs.NewSteering(n.sw)
	want := rowsOf("br-ex", 0)
	n.apply(d, want)
	equal := cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })

	repair := func(what string) {
		t.Helper()
		begin := time.Now()
		end := time.After(deadline)
		for {
			select {
			case <-n.sw.Changes():
			case <-time.After(100 * time.Millisecond): // the reconciler's retry of a failed pass
			case <-end:
				t.Fatalf("%s: not restored in time", what)
			}
			if n.sw.CheckPort(ctx, "br-ex", "sluice0-ovs") != nil {
				if n.sw.EnsurePort(ctx, "br-ex", "sluice0-ovs") != nil {
					continue
				}
			}
			got, err := d.List(ctx)
			if err != nil {
				continue
			}
			if cmp.Diff(want, got, equal) == "" {
				t.Logf("%s: restored after %v", what, time.Since(begin).Round(time.Millisecond))
				return
			}
			var rows []reconcile.Row[intent.SteeringKey, intent.Steering]
			for k, v := range want {
				rows = append(rows, reconcile.Row[intent.SteeringKey, intent.Steering]{Key: k, Value: v})
			}
			d.Apply(ctx, rows)
		}
	}
	n.quiet()
	n.run("ovs-ofctl del-flows unix:" + n.path("br-ex.mgmt") + " dl_src=" + gatewayMAC.String())
	n.noticed("deleted flows")
	repair("deleted flows")

	n.quiet()
	n.stop(n.daemon)
	n.startDaemon()
	n.noticed("the restart")
	repair("restart")
	if err := n.sw.CheckPort(ctx, "br-ex", "sluice0-ovs"); err != nil {
		t.Fatal(err)
	}
}
