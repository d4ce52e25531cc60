package ovs

import (
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

func matchOf(priority, inPort, vlan int, src, dst intent.MAC, kind matchKind, prefix netip.Prefix) match {
	return match{priority: priority, inPort: inPort, vlan: vlan, src: src, dst: dst, kind: kind, prefix: prefix}
}

func answerOf(prefix netip.Prefix, protocol intent.Protocol, port uint16) match {
	m := matchOf(200, 3, 0, intent.MAC{2, 0, 0, 0, 0, 1}, intent.MAC{}, matchAnswer, prefix)
	m.protocol, m.port = protocol, port
	return m
}

func TestFlowText(t *testing.T) {
	m, n := intent.MAC{2, 0, 0, 0, 0, 1}, intent.MAC{2, 0, 0, 0, 0, 2}
	p := netip.MustParsePrefix
	out := action{kind: actionOutput, output: 2}
	for _, tc := range []struct {
		dumped string // as Open vSwitch 3.1 shows it
		want   flow
	}{
		{"cookie=0x736c756963650001, priority=210,arp,in_port=3,dl_vlan=100,dl_src=02:00:00:00:00:01,arp_tpa=10.0.0.0/24,arp_op=1 actions=output:2",
			flow{matchOf(210, 3, 100, m, intent.MAC{}, matchARP, p("10.0.0.0/24")), out}},
		{"cookie=0x1, priority=210,icmp6,in_port=3,vlan_tci=0x0000/0x1fff,dl_src=02:00:00:00:00:01,icmp_type=135,icmp_code=0,nd_target=2001:db8::1 actions=output:2",
			flow{matchOf(210, 3, 0, m, intent.MAC{}, matchNS, p("2001:db8::1/128")), out}},
		{"cookie=0x1, priority=205,icmp6,in_port=3,dl_vlan=100,dl_src=02:00:00:00:00:01,ipv6_src=2001:db8::/64,icmp_type=136,icmp_code=0 actions=NORMAL",
			flow{matchOf(205, 3, 100, m, intent.MAC{}, matchNAFrom, p("2001:db8::/64")), action{kind: actionNormal}}},
		{"cookie=0x1, priority=205,icmp6,in_port=3,dl_vlan=100,dl_src=02:00:00:00:00:01,icmp_type=135,icmp_code=0 actions=NORMAL",
			flow{matchOf(205, 3, 100, m, intent.MAC{}, matchNSFrom, p("::/0")), action{kind: actionNormal}}},
		{"cookie=0x1, priority=200,in_port=2,vlan_tci=0x0000/0x1fff,dl_dst=02:00:00:00:00:01 actions=output:2",
			flow{matchOf(200, 2, 0, intent.MAC{}, m, matchAll, netip.Prefix{}), out}},
		{"cookie=0x1, priority=200,ip,in_port=3,vlan_tci=0x0000/0x1fff,dl_src=02:00:00:00:00:01,nw_src=10.0.0.0/24 actions=set_field:02:00:00:00:00:02->eth_dst,output:2",
			flow{matchOf(200, 3, 0, m, intent.MAC{}, matchIP, p("10.0.0.0/24")), action{kind: actionOutput, output: 2, setDst: n}}},
		{"cookie=0x1, priority=200,ipv6,in_port=3,dl_vlan=100,dl_src=02:00:00:00:00:01 actions=mod_dl_dst:02:00:00:00:00:02,output:2",
			flow{matchOf(200, 3, 100, m, intent.MAC{}, matchIP, p("::/0")), action{kind: actionOutput, output: 2, setDst: n}}},
		{"cookie=0x1, priority=200,in_port=4,vlan_tci=0x0000/0x1fff,dl_dst=02:00:00:00:00:01 actions=push_vlan:0x8100,set_field:4196->vlan_vid,output:2",
			flow{matchOf(200, 4, 0, intent.MAC{}, m, matchAll, netip.Prefix{}), action{kind: actionOutput, output: 2, push: 100}}},
		{"cookie=0x1, priority=200,ip,in_port=3,dl_vlan=100,dl_src=02:00:00:00:00:01,nw_src=10.0.0.0/24 actions=set_field:02:00:00:00:00:02->eth_dst,pop_vlan,output:4",
			flow{matchOf(200, 3, 100, m, intent.MAC{}, matchIP, p("10.0.0.0/24")), action{kind: actionOutput, output: 4, setDst: n, pop: true}}},
		{"cookie=0x1, priority=200,tcp,in_port=3,vlan_tci=0x0000/0x1fff,dl_src=02:00:00:00:00:01,nw_src=10.0.0.5,tp_src=8080 actions=set_field:02:00:00:00:00:02->eth_dst,output:2",
			flow{answerOf(p("10.0.0.5/32"), intent.TCP, 8080), action{kind: actionOutput, output: 2, setDst: n}}},
		{"cookie=0x1, priority=200,udp6,in_port=3,vlan_tci=0x0000/0x1fff,dl_src=02:00:00:00:00:01,ipv6_src=2001:db8::5,tp_src=53 actions=set_field:02:00:00:00:00:02->eth_dst,output:2",
			flow{answerOf(p("2001:db8::5/128"), intent.UDP, 53), action{kind: actionOutput, output: 2, setDst: n}}},
		{"cookie=0x1, priority=200,sctp6,in_port=3,vlan_tci=0x0000/0x1fff,dl_src=02:00:00:00:00:01,ipv6_src=2001:db8::5 actions=set_field:02:00:00:00:00:02->eth_dst,output:2",
			flow{answerOf(p("2001:db8::5/128"), intent.SCTP, 0), action{kind: actionOutput, output: 2, setDst: n}}},
		{"cookie=0x736c756963650002, priority=100,in_port=2 actions=drop",
			flow{matchOf(100, 2, anyVLAN, intent.MAC{}, intent.MAC{}, matchAll, netip.Prefix{}), action{}}},
	} {
		got, err := parseFlow(tc.dumped)
		if err != nil || got != tc.want {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", tc.dumped, got, err, tc.want)
			continue
		}
		if back, err := parseFlow(got.format()); err != nil || back != got {
			t.Errorf("%s: written %q, read back %+v, %v", tc.dumped, got.format(), back, err)
		}
	}
}

func TestForeignShapes(t *testing.T) {
	for _, line := range []string{
		"", "priority=1", "priority=200,in_port=2,tcp actions=drop", "in_port=2 actions=output:1,output:2",
		"table=1,in_port=2 actions=drop", "in_port=2,ip,nw_src=10.0.0.0/255.0.255.0 actions=drop",
		"in_port=LOCAL actions=drop", "arp,arp_op=2,arp_tpa=10.0.0.1 actions=drop", "in_port=2,dl_vlan=5000 actions=drop",
		"ip,nw_src=2001:db8::1 actions=drop", "in_port=1 actions=set_field:1->eth_src,output:1",
		"in_port=2 actions=pop_vlan", "in_port=2 actions=push_vlan:0x8100,output:1", "in_port=2 actions=push_vlan:0x88a8,set_field:4097->vlan_vid,output:1",
		"in_port=2 actions=set_field:4097->vlan_vid,output:1", "in_port=2 actions=output:1,pop_vlan", "in_port=2 actions=pop_vlan,mod_dl_dst:02:00:00:00:00:02,output:1",
	} {
		if f, err := parseFlow(line); err == nil {
			t.Errorf("%q was read as %+v", line, f)
		}
	}
}

func FuzzParseFlow(f *testing.F) {
	f.Add("cookie=0x736c756963650001, priority=210,arp,in_port=3,dl_vlan=100,dl_src=02:00:00:00:00:01,arp_tpa=10.0.0.0/24,arp_op=1 actions=output:2")
	f.Add("priority=200,in_port=3,dl_vlan=100 actions=mod_dl_dst:02:00:00:00:00:02,pop_vlan,output:2")
	f.Add("priority=200,in_port=3,vlan_tci=0x0000/0x1fff actions=push_vlan:0x8100,set_field:4196->vlan_vid,output:2")
	f.Add("priority=200,in_port=3 actions=set_field,mod_dl_dst,push_vlan")
	f.Add("priority=205,icmp6,in_port=3,icmp_type=135,icmp_code=0 actions=NORMAL")
	f.Add("priority=200,ipv6,in_port=3,ipv6_src=2001:db8::/64 actions=mod_dl_dst:02:00:00:00:00:02,output:2")
	f.Fuzz(func(t *testing.T, line string) {
		got, err := parseFlow(line)
		if err != nil {
			return
		}
		if back, err := parseFlow(got.format()); err != nil || back != got {
			t.Fatalf("%q: %+v written %q, read back %+v, %v", line, got, got.format(), back, err)
		}
	})
}
