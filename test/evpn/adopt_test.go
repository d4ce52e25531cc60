package evpn_test

import (
	"fmt"
	"strings"
	"testing"
)

// A node that ovn-bgp-agent ran: its flows come before Sluice's and lead elsewhere.
// "sluicectl adopt" lists them and changes nothing; with --apply those of the VRFs that
// are named are Sluice's; a sluiced that starts then puts its own flows in their place,
// traffic goes Sluice's way, and then the adopted devices and ports go. What is an
// operator's stays. (There is no VRF device here: the VRFs themselves are tested in a
// virtual machine.)
func TestAdopt(t *testing.T) {
	w := shared(t)
	t.Cleanup(func() {
		_, _ = w.Exec(background, "a1", "sh", "-c", `ovs-vsctl --if-exists del-port br-ex veth-ovs-1001; ip link del veth-vrf-1001
			ovs-ofctl del-flows br-ex cookie=998/-1`)
	})
	w.kill("a1", "sluiced")
	w.exec("a1", "sh", "-ec", `ip link add veth-vrf-1001 type veth peer name veth-ovs-1001; ip link set veth-vrf-1001 up; ip link set veth-ovs-1001 up
		for d in veth-vrf-1001 veth-ovs-1001; do ip link property add dev $d altname sluice:adopted:$d; done
		ovs-vsctl --timeout=10 add-port br-ex veth-ovs-1001
		patch=$(ovs-vsctl get interface $(ovs-vsctl list-ports br-ex | grep ^patch-) ofport); end=$(ovs-vsctl get interface veth-ovs-1001 ofport)
		for src in ip,nw_src=10.10.0.0/24 ipv6,ipv6_src=fd00:10::/64; do
			ovs-ofctl add-flow br-ex cookie=998,priority=1000,in_port=$patch,$src,actions=mod_dl_dst:02:00:00:00:00:99,output:$end
		done
		ovs-ofctl add-flow br-ex cookie=998,priority=7,tcp,tp_dst=9,actions=drop`)
	agents := func() string { return w.exec("a1", "ovs-ofctl", "--no-stats", "dump-flows", "br-ex", "cookie=998/-1") }
	before := agents()
	w.cutOff("a-red1", far("a-red1")...)
	adopt := func(args ...string) string {
		return w.exec("a1", append([]string{sluicectl(), "adopt", "--config", w.node("a1").Dir + "/sluiced.yaml"}, args...)...)
	}
	if out := adopt(); out != "would adopt 2 flows of bridge br-ex with cookie 998\nnothing was changed; --apply adopts them\n" || agents() != before {
		t.Errorf("listed: %q, flows %s", out, agents())
	}
	if out := adopt("--apply", "--vrf", "1002", "--vrf", "10010"); out != "nothing of another agent is here\n" || agents() != before {
		t.Errorf("adopted of other VRFs: %q, flows %s", out, agents())
	}
	if out := adopt("--apply", "--vrf", "1001"); out != "adopted 2 flows of bridge br-ex with cookie 998\n" {
		t.Errorf("adopted: %q", out)
	}
	if out := adopt(); out != "nothing of another agent is here\n" {
		t.Errorf("listed again: %q", out)
	}
	w.startAgain("a1", "sluiced")
	w.connected()
	w.eventually("nothing adopted is left", func() error {
		links, ports := w.exec("a1", "ip", "-o", "link"), w.exec("a1", "ovs-vsctl", "list-ports", "br-ex")
		flows := w.exec("a1", "ovs-ofctl", "--no-stats", "dump-flows", "br-ex")
		if strings.Contains(links+ports, "veth-ovs-1001") || strings.Contains(flows, "priority=1000") {
			return fmt.Errorf("links %s\nports %s\nflows %s", links, ports, flows)
		}
		return nil
	})
	if out := agents(); !strings.Contains(out, "tp_dst=9") {
		t.Errorf("the operator's flow is gone: %s", out)
	}
	w.connected()
	w.clean()
}
