package ovs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// What ovs-ofctl says of ovn-bgp-agent's flows is read to its end, whatever stands
// before: a flow may have any length.
func TestAgentFlows(t *testing.T) {
	b := Bridge{Name: "br-ex", Ports: []Port{{Name: "veth-ovs-7", Number: 7}, {Name: "phys", Number: 1}}}
	long := strings.Repeat("mod_dl_dst:02:00:00:00:00:0b,", 10_000)
	text := fmt.Sprintf(`NXST_FLOW reply (xid=0x4):
 cookie=0x3e6, priority=5,ip actions=%[1]soutput:1
 cookie=0x3e6, priority=1000,ip,in_port=2,nw_src=10.7.0.0/24 actions=%[1]soutput:7
 cookie=0x3e7, priority=900,ip,in_port=2 actions=output:7
 cookie=0x3e6, priority=1000,ipv6,in_port=2,ipv6_src=fd00:7::/64 actions=strip_vlan,output:7
 cookie=0x3e6, priority=7,tcp actions=output:17
`, long)
	want := []AgentFlow{
		{"veth-ovs-7", "priority=1000,ip,in_port=2,nw_src=10.7.0.0/24,actions=" + long + "output:7"},
		{"veth-ovs-7", "priority=1000,ipv6,in_port=2,ipv6_src=fd00:7::/64,actions=strip_vlan,output:7"},
	}
	if got := b.agentFlows(text, map[string]bool{"veth-ovs-7": true, "phys": false}); !slices.Equal(got, want) {
		t.Errorf("%.300v; want %.300v", got, want)
	}
}
