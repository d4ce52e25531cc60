package ovs_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// Flows of another agent that lead to the ports asked for are found, get our cookie, and
// do what they did. Each goes with the first row for the same packets, not with one that
// cannot be written or is another gateway's, or by itself. Other flows with the same
// cookie stay.
func TestAdoptFlows(t *testing.T) {
	n := newNode(t)
	n.ensure()
	ctx := context.Background()
	n.run("ip link add veth-vrf-7 type veth peer name veth-ovs-7; ip link set veth-ovs-7 up; ovs-vsctl add-port br-ex veth-ovs-7")
	number := func(port string) string {
		return strings.TrimSpace(n.run("ovs-vsctl --timeout=10 wait-until interface " + port + " ofport!=[] -- get interface " + port + " ofport"))
	}
	patch, end, wire := number(patchPort), number("veth-ovs-7"), number("phys")
	mgmt := " unix:" + n.path("br-ex.mgmt")
	for _, f := range []string{
		"priority=1000,ip,in_port=" + patch + ",dl_src=02:00:00:00:00:01,nw_src=10.10.0.0/16,actions=mod_dl_dst:02:00:00:00:00:0b,output:" + end,
		"priority=1000,ipv6,in_port=" + patch + ",dl_src=02:00:00:00:00:01,ipv6_src=2001:db8:10::/64,actions=mod_dl_dst:02:00:00:00:00:0b,strip_vlan,output:" + end,
		"priority=1000,ip,in_port=" + patch + ",dl_src=02:00:00:00:00:0a,nw_src=10.10.0.0/16,actions=mod_dl_dst:02:00:00:00:00:0b,output:" + end,
		"priority=1000,ip,in_port=" + patch + ",dl_src=02:00:00:00:00:0c,nw_src=10.8.0.0/24,actions=mod_dl_dst:02:00:00:00:00:0b,output:" + wire,
	} {
		n.run("ovs-ofctl add-flow" + mgmt + " cookie=998," + f)
	}
	steering := ovs.NewSteering(n.sw)
	strays := func(want int) {
		t.Helper()
		if got, err := steering.Strays(ctx); err != nil || got["br-ex"] != want {
			t.Errorf("%d strays wanted: %v, %v", want, got, err)
		}
	}
	adopt := func(want int) {
		t.Helper()
		found, err := n.sw.AgentFlows(ctx, map[string]bool{"veth-ovs-7": true})
		if err != nil || len(found) != min(1, want) || len(found["br-ex"]) != want {
			t.Fatalf("want %d flows: %v, %v", want, found, err)
		}
		if err := n.sw.AdoptFlows(ctx, "br-ex", found["br-ex"]); err != nil {
			t.Fatal(err)
		}
	}
	adopt(3)
	adopt(0)
	strays(3)
	if out := n.run("ovs-ofctl -O OpenFlow14 --no-stats dump-flows" + mgmt + " cookie=" + "0x736c756963650001/-1"); strings.Count(out, "priority=1000") != 3 || !strings.Contains(out, "output:") {
		t.Errorf("adopted: %s", out)
	}
	good, bad := rowsOf("br-ex", 0), intent.SteeringKey{Gateway: intent.GatewayKey{Bridge: "br-ex", VLAN: 4096, MAC: gatewayMAC}, Kind: intent.SteerToOVN}
	if errs := steering.Apply(ctx, []reconcile.Row[intent.SteeringKey, intent.Steering]{{Key: bad, Value: intent.Steering{Key: bad, Localnet: "provnet-4711-0815"}}}); errs == nil {
		t.Error("a bad row was written")
	}
	strays(3)
	n.apply(steering, good)
	strays(1)
	if errs := steering.Delete(ctx, slices.Collect(maps.Keys(good))); errs != nil {
		t.Error(errs)
	}
	strays(1)
	if out := n.run("ovs-ofctl -O OpenFlow14 --no-stats dump-flows" + mgmt + " cookie=998/-1"); strings.Count(out, "priority=1000") != 1 {
		t.Errorf("left alone: %s", out)
	}
	n.run("ovs-ofctl add-flow" + mgmt + " cookie=998,priority=1000,ip,in_port=" + patch + ",nw_src=10.9.0.0/24,actions=output:" + end)
	adopt(1)
	strays(2)
	if err := steering.RemoveStrays(ctx, "br-ex"); err != nil {
		t.Error(err)
	}
	strays(0)
	n.run("ovs-vsctl --timeout=10 add-port br-ex vlan-7 -- set interface vlan-7 type=internal")
	n.until("vlan-7 is read", func() bool { _, ok := n.sw.HasPort("vlan-7"); return ok })
	for range 2 {
		for _, name := range []string{"veth-ovs-7", "vlan-7"} {
			if err := n.sw.DropPort(ctx, name); err != nil {
				t.Error(err)
			}
		}
	}
	if out := n.run("ovs-vsctl list-ports br-ex"); strings.Contains(out, "-7") || !strings.Contains(out, "phys") {
		t.Errorf("ports: %s", out)
	}
	if out := n.run("ip -o link"); strings.Contains(out, "vlan-7") {
		t.Errorf("devices: %s", out)
	}
}
