package ovs_test

import (
	"context"
	"errors"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// contested is a row and the match of its flow.
func contested(n *node, prefix string) (intent.SteeringKey, intent.Steering, string) {
	n.t.Helper()
	k := intent.SteeringKey{
		Gateway: intent.GatewayKey{Bridge: "br-ex", VLAN: 100, MAC: gatewayMAC},
		Kind:    intent.SteerSource, Prefix: netip.MustParsePrefix(prefix),
	}
	field := "ip,nw_src="
	if k.Prefix.Addr().Is6() {
		field = "ipv6,ipv6_src="
	}
	number := strings.TrimSpace(n.run("ovs-vsctl get interface " + patchPort + " ofport"))
	match := "priority=200,in_port=" + number + ",dl_vlan=100,dl_src=" + gatewayMAC.String() + "," + field + prefix
	return k, intent.Steering{Key: k, Localnet: "provnet-4711-0815", NextHopMAC: nextHopMAC}, match
}

// OpenFlow's "add" replaces a flow of the same match whatever its cookie is. A
// foreign flow that is there first stays and is the error of that one row; one
// that comes later and takes the place of ours is noticed.
func TestContestedFlow(t *testing.T) {
	for _, prefix := range []string{"10.10.0.0/24", "2001:db8:10::/64"} {
		t.Run(prefix, func(t *testing.T) {
			n := newNode(t)
			ctx := context.Background()
			n.ensure()
			d := ovs.NewSteering(n.sw)
			k, v, match := contested(n, prefix)
			other := intent.SteeringKey{Gateway: k.Gateway, Kind: intent.SteerToOVN}
			rows := []reconcile.Row[intent.SteeringKey, intent.Steering]{
				{Key: k, Value: v}, {Key: other, Value: intent.Steering{Key: other, Localnet: v.Localnet}},
			}
			mgmt := " unix:" + n.path("br-ex.mgmt")
			add := "ovs-ofctl -O OpenFlow14 add-flow" + mgmt + " cookie=0xf00,idle_timeout=600,send_flow_rem," + match + ",actions=NORMAL"

			n.run(add)
			errs := d.Apply(ctx, rows)
			if len(errs) != 2 || !errors.Is(errs[0], reconcile.ErrForeign) || errs[1] != nil {
				t.Fatalf("errors: %v", errs)
			}
			if !strings.Contains(n.dump(), "cookie=0xf00") {
				t.Fatalf("the foreign flow is gone:\n%s", n.dump())
			}

			n.run("ovs-ofctl -O OpenFlow14 del-flows" + mgmt + " cookie=0xf00/-1")
			if errs := d.Apply(ctx, rows); errs != nil {
				t.Fatalf("without the foreign flow: %v", errs)
			}
			n.quiet()
			n.run(add)
			n.noticed("a foreign flow in the place of ours")
			if got := n.list(d); got[k] == v {
				t.Errorf("listed as intact:\n%s", n.dump())
			}
			if errs := d.Apply(ctx, rows); len(errs) != 2 || !errors.Is(errs[0], reconcile.ErrForeign) {
				t.Fatalf("errors: %v", errs)
			}
			n.quiet()
			n.run("ovs-ofctl -O OpenFlow14 del-flows" + mgmt + " cookie=0xf00/-1")
			n.noticed("the way is free again")
			if errs := d.Apply(ctx, rows); errs != nil {
				t.Fatalf("again without the foreign flow: %v", errs)
			}
			if got := n.list(d); got[k] != v {
				t.Errorf("listed %v:\n%s", got, n.dump())
			}
		})
	}
}

// The default flow replaces no foreign one either.
func TestContestedDefault(t *testing.T) {
	n := newNode(t)
	n.ensure()
	number := strings.TrimSpace(n.run("ovs-vsctl get interface sluice0-ovs ofport"))
	mgmt := " unix:" + n.path("br-ex.mgmt")
	n.run("ovs-ofctl add-flow" + mgmt + " cookie=0xf00,priority=100,in_port=" + number + ",actions=drop")
	if err := n.sw.EnsurePort(context.Background(), "br-ex", "sluice0-ovs"); !errors.Is(err, reconcile.ErrForeign) {
		t.Errorf("error: %v", err)
	}
	if !strings.Contains(n.dump(), "cookie=0xf00") {
		t.Errorf("the foreign flow is gone:\n%s", n.dump())
	}
}

// Watching flows leaves nothing in the switch's run directory: under systemd it
// is read-only to sluiced.
func TestMonitorMakesNoSocket(t *testing.T) {
	n := newNode(t)
	n.ensure()
	n.apply(ovs.NewSteering(n.sw), rowsOf("br-ex", 0))
	n.quiet()
	n.run("ovs-ofctl del-flows unix:" + n.path("br-ex.mgmt") + " dl_src=" + gatewayMAC.String())
	n.noticed("deleted flows")
	if found, _ := filepath.Glob(n.path("ovs-ofctl.*")); len(found) > 0 {
		t.Errorf("while the monitor runs: %v", found)
	}
}
