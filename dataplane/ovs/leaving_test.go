package ovs

import "testing"

// TestOwnDeletion: the monitor's word of a flow that this process deletes is no loss; of one that
// somebody else deletes or changes it is.
func TestOwnDeletion(t *testing.T) {
	const (
		v4    = "priority=200,in_port=5,vlan_tci=0x0000/0x1fff,dl_src=0a:00:00:00:00:01,ip,nw_src=10.0.0.0/24"
		v6    = "priority=210,in_port=5,dl_vlan=101,dl_src=0a:00:00:00:00:01,icmp6,icmp_type=135,icmp_code=0,nd_target=2001:db8::1"
		other = "priority=200,in_port=6,dl_vlan=101,dl_src=0a:00:00:00:00:01,ip,nw_src=10.0.0.0/24"
	)
	events := map[string]string{
		v4:    " event=DELETED reason=delete table=0 cookie=0x736c756963650001 ip,in_port=5,vlan_tci=0x0000/0x1fff,dl_src=0a:00:00:00:00:01,nw_src=10.0.0.0/24",
		v6:    " event=DELETED reason=delete table=0 cookie=0x736c756963650001 icmp6,in_port=5,dl_vlan=101,dl_src=0a:00:00:00:00:01,nd_target=2001:db8::1,icmp_type=135,icmp_code=0",
		other: " event=DELETED reason=delete table=0 cookie=0x736c756963650001 ip,in_port=6,dl_vlan=101,dl_src=0a:00:00:00:00:01,nw_src=10.0.0.0/24",
	}
	const bridge = "br-ex"
	sw := New(Config{})
	lost := func(where, of string, want bool) {
		t.Helper()
		if got := sw.lost(where, events[of]); got != want {
			t.Errorf("on %s, %s: lost %t, want %t", where, events[of], got, want)
		}
	}
	deletes := func(matches ...string) (lines []string) {
		for _, m := range matches {
			lines = append(lines, deleteLine(cookieSteering, m))
		}
		return lines
	}
	lost(bridge, v4, true)
	sw.sends(bridge, deletes(v4, v6))
	lost("br-ex2", v4, true)
	lost(bridge, other, true)
	lost(bridge, v4, false)
	lost(bridge, v4, true) // it was deleted once
	lost(bridge, v6, false)

	// What is added again, before or with the deletion, is wanted: its end is a loss.
	f, err := parseFlow(v4 + ",actions=output:6")
	if err != nil {
		t.Fatal(err)
	}
	sw.sends(bridge, deletes(v4))
	sw.sends(bridge, []string{addLine(cookieSteering, f)})
	lost(bridge, v4, true)
	sw.sends(bridge, append(deletes(v4), addLine(cookieSteering, f)))
	lost(bridge, v4, true)

	sw.sends(bridge, deletes(v4))
	sw.forgetLeaving(bridge)
	lost(bridge, v4, true)
	if n := len(sw.leaving[bridge]); n != 0 {
		t.Errorf("%d matches are left", n)
	}
}
