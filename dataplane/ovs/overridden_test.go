package ovs

import (
	"strings"
	"testing"
)

// Which flows of others take packets from ours.
func TestOverriding(t *testing.T) {
	const ours = ` cookie=0x736c756963650001, priority=200,in_port=2,vlan_tci=0x0000/0x1fff,dl_src=02:00:00:00:00:01,ip,nw_src=10.10.0.0/24 actions=mod_dl_dst:02:53:4c:55:49:43,output:3
 cookie=0x736c756963650001, priority=200,ipv6,in_port=2,dl_vlan=100,dl_src=02:00:00:00:00:01,ipv6_src=2001:db8:10::/64 actions=mod_dl_dst:02:53:4c:55:49:43,output:3
 cookie=0x736c756963650001, priority=210,arp,in_port=2,vlan_tci=0x0000/0x1fff,dl_src=02:00:00:00:00:01,arp_tpa=172.24.0.0/16,arp_op=1 actions=output:3
 cookie=0x736c756963650001, priority=210,icmp6,in_port=2,vlan_tci=0x0000/0x1fff,dl_src=02:00:00:00:00:01,nd_target=2001:db8:24::/64,icmp_type=135,icmp_code=0 actions=output:3
 cookie=0x736c756963650002, priority=100,in_port=3 actions=drop
`
	for _, row := range []struct {
		flow string
		want bool
	}{
		{"priority=65535,in_port=2 actions=drop", true},
		{"actions=NORMAL", true}, // of priority 32768
		{"priority=0 actions=NORMAL", false},
		{"priority=100,in_port=3 actions=NORMAL", false},
		{"priority=101,in_port=3 actions=NORMAL", true},
		{"priority=900,in_port=1 actions=NORMAL", false},
		{"priority=900,in_port=LOCAL actions=NORMAL", false},
		{"priority=900,ip,in_port=2,nw_src=10.10.0.0/16 actions=NORMAL", true},
		{"priority=900,tcp,in_port=2,nw_src=10.10.0.7,tp_dst=80 actions=NORMAL", true},
		{"priority=900,ip,in_port=2,nw_src=10.99.0.0/16 actions=NORMAL", false},
		{"priority=900,ipv6,in_port=2,ipv6_src=2001:db8::/32 actions=drop", true},
		{"priority=900,ipv6,in_port=2,ipv6_src=2001:db9::/32,nd_target=2001:db9::1 actions=drop", false},
		{"priority=900,ipv6,in_port=2,dl_vlan=200,ipv6_src=2001:db8::/32 actions=drop", false},
		{"priority=900,tcp6,in_port=2,dl_vlan=100 actions=drop", true},
		{"priority=900,tcp6,in_port=2,vlan_tci=0x0000 actions=drop", false},
		{"priority=205,arp,in_port=2 actions=NORMAL", false},
		{"priority=211,arp,in_port=2,arp_op=1 actions=NORMAL", true},
		{"priority=211,arp,in_port=2,arp_op=2 actions=NORMAL", false},
		{"priority=211,arp,in_port=2,arp_tpa=192.0.2.1 actions=NORMAL", false},
		{"priority=211,icmp6,in_port=2,icmp_type=135 actions=NORMAL", true},
		{"priority=211,icmp6,in_port=2,vlan_tci=0x0000,icmp_type=136 actions=NORMAL", false},
		{"priority=900,in_port=2,dl_src=02:00:00:00:00:02 actions=drop", false},
		{"priority=900,in_port=2,dl_src=02:00:00:00:00:00/ff:ff:ff:00:00:00 actions=drop", true},
		{"priority=900,in_port=2,dl_type=0x88cc actions=drop", false},
		{"priority=900,in_port=2,vlan_tci=0x1000/0x1000,ip actions=drop", false},
		{"priority=900,in_port=2,vlan_tci=0x1000/0x1000 actions=drop", true},
	} {
		line := "cookie=0x3e7, " + row.flow
		got := overriding([]byte(ours + " " + line + "\n"))
		if row.want != (len(got) == 1 && got[0] == line) || !row.want && len(got) > 0 {
			t.Errorf("%s: %v, want %t", row.flow, got, row.want)
		}
	}
	if got := overriding([]byte(ours)); len(got) > 0 {
		t.Errorf("without flows of others: %s", strings.Join(got, "\n"))
	}
}
