package evpn

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// What nothing but VIPs has is announced as such: it waits for them.
func TestBalanceAnnouncesForVIPs(t *testing.T) {
	tr := compute(node(false).tenant(1, 1001).balancer("web", map[string]string{
		"10.99.0.1:80": "10.10.0.5:80", "[fd00::1]:80": "[2001:db8:10::5]:80", "10.10.0.5:80": "10.10.0.6:80",
		"172.24.4.1:80": "10.10.0.5:80", "[2001:db8:ff::1]:80": "[2001:db8:10::5]:80",
	}, nil), balancedConfig())
	var got []string
	for k, a := range wanted.Rows(tr.Tables(), intent.Announcements) {
		if a.VIPs {
			got = append(got, k.String())
		}
	}
	check(t, "announced for VIPs", []string{"1001 10.99.0.1/32", "1001 fd00::1/128"}, sorted(got))
}

// Where OVN gives balanced packets another source it balances them, unless the load balancer is
// exempt.
func TestBalanceForcedSNAT(t *testing.T) {
	for _, tt := range []struct {
		force, skip  string
		want4, want6 string
	}{
		{"", "", "auto", "auto"},
		{"router_ip", "", "forced-snat", "forced-snat"},
		{"10.10.0.1", "", "forced-snat", "auto"},
		{"2001:db8:10::1", "", "auto", "forced-snat"},
		{"10.10.0.1 2001:db8:10::1", "", "forced-snat", "forced-snat"},
		{"router_ip", "false", "forced-snat", "forced-snat"},
		{"router_ip", "true", "auto", "auto"},
	} {
		c := node(false).tenant(1, 1001).balancer("web", map[string]string{"10.99.0.1:80": "10.10.0.5:8080", "[fd00::1]:80": "[2001:db8:10::5]:8080"}, func(b *ovn.LoadBalancer) {
			b.Options = map[string]string{"skip_snat": tt.skip}
		})
		lr := c["nb-r1"].(ovn.LogicalRouter)
		lr.Options = map[string]string{"lb_force_snat_ip": tt.force}
		rows := c.load()
		tr := NewTranslator(balancedConfig(), indices{}, &loadbalancer.Book{})
		tr.Step(rows, ovn.Dirty{All: true}, true)
		// It counts from when it is set.
		tr.Step(rows, rows.Apply([]ovn.Change{ovn.Set(lr)}), true)
		line := func(vip, reason string) string {
			return fmt.Sprintf("1001 %s/tcp %s 1/1 served %t, route local to VIPs true, announced true", vip, reason, reason == "auto")
		}
		check(t, fmt.Sprintf("VIPs with %+v", tt), []string{line("10.99.0.1:80", tt.want4), line("[fd00::1]:80", tt.want6)}, balanced(tr))
	}
}

// A VIP that the router translates to is OVN's, and nobody is told of it: it would have the
// answers to what is translated come here, and go nowhere.
func TestBalanceOfTranslated(t *testing.T) {
	for _, external := range []string{"172.24.4.1", "198.51.100.7"} {
		c := node(false).tenant(1, 1001).balancer("web", map[string]string{external + ":80": "10.10.0.5:8080", "10.99.0.1:80": "10.10.0.5:8080"}, nil)
		lr := c["nb-r1"].(ovn.LogicalRouter)
		lr.NAT = []ovn.UUID{"nat"}
		c = c.put(lr, ovn.NAT{UUID: "nat", Type: "snat", LogicalIP: "10.11.0.0/24", ExternalIP: external})
		check(t, "VIPs with SNAT to "+external, sorted([]string{
			"1001 10.99.0.1:80/tcp auto 1/1 served true, route local to VIPs true, announced true",
			"1001 " + external + ":80/tcp snat-source 1/1 served false, route kind(0) to VIPs false, announced false",
		}), balanced(compute(c, balancedConfig())))
	}
}

// The same goes for an address that the router is told to translate to.
func TestBalanceOfForcedSource(t *testing.T) {
	for _, option := range []string{"dnat_force_snat_ip", "lb_force_snat_ip"} {
		c := node(false).tenant(1, 1001).balancer("web", map[string]string{
			"198.51.100.7:80": "10.10.0.5:8080", "[2001:db8:99::7]:80": "[2001:db8:10::5]:8080", "10.99.0.1:80": "10.10.0.5:8080",
		}, func(b *ovn.LoadBalancer) { b.Options = map[string]string{"skip_snat": "true"} })
		lr := c["nb-r1"].(ovn.LogicalRouter)
		lr.Options = map[string]string{option: "198.51.100.7 2001:db8:99::7"}
		check(t, "VIPs with "+option, sorted([]string{
			"1001 10.99.0.1:80/tcp auto 1/1 served true, route local to VIPs true, announced true",
			"1001 198.51.100.7:80/tcp snat-source 1/1 served false, route kind(0) to VIPs false, announced false",
			"1001 [2001:db8:99::7]:80/tcp snat-source 1/1 served false, route kind(0) to VIPs false, announced false",
		}), balanced(compute(c.put(lr), balancedConfig())))
	}
}

// That load balancers of routers cannot be seen is told once, where there is a gateway port.
func TestBalancersUnknown(t *testing.T) {
	unknown := "node load-balancers " + reason.BalancersUnknown
	tell := func(tr *Translator) bool {
		_, notes := complaints(tr)
		n := 0
		for _, note := range notes {
			if note == unknown {
				n++
			}
		}
		if n > 1 {
			t.Errorf("told %d times", n)
		}
		return n > 0
	}
	two := func() cloud { return node(false).tenant(1, 1001).tenant(2, 1002) }
	standby, off := standbyConfig(), standbyConfig()
	standby.LoadBalancing = true
	for _, tt := range []struct {
		name  string
		cloud cloud
		cfg   Config
		want  bool
	}{
		{"gateway ports here", two(), standby, true},
		{"one is elsewhere", two().candidate("cr-lrp-gw-r1", there), standby, true},
		{"both are", two().candidate("cr-lrp-gw-r1", there).candidate("cr-lrp-gw-r2", there), standby, false},
		{"none", node(false), standby, false},
		{"off", two(), off, false},
		{"they are known", node(false).tenant(1, 1001).balancer("web", nil, nil), standby, false},
	} {
		tr := compute(tt.cloud, tt.cfg)
		if got := tell(tr); got != tt.want {
			t.Errorf("%s: told %t", tt.name, got)
		}
		if o := tr.Objects(); tt.want && !slices.ContainsFunc(o, func(o status.Object) bool { return o.Reason == reason.BalancersUnknown && o.State == status.Warning }) {
			t.Errorf("%s: objects %+v", tt.name, o)
		}
	}
	// A database that is late is waited for, and one that comes says it all.
	rows := two().put(ovn.LogicalRouter{UUID: "nb-r1"}, ovn.LogicalRouter{UUID: "nb-r2"}).load()
	tr := NewTranslator(balancedConfig(), indices{}, &loadbalancer.Book{})
	for _, step := range []struct {
		change  []ovn.Change
		expects bool
		want    bool
	}{
		{nil, true, false},
		{nil, false, true},
		{[]ovn.Change{ovn.Set(ovn.NBGlobal{UUID: "nb-global"})}, false, false},
	} {
		rows.ExpectNB(step.expects)
		before, was := tr.Complaints(), tell(tr)
		rows.Apply(step.change)
		tr.Step(rows, ovn.Dirty{All: true}, true)
		if got := tell(tr); got != step.want || got != was && tr.Complaints() == before {
			t.Errorf("%+v: told %t; complaints %d, %d before", step, got, tr.Complaints(), before)
		}
	}
}

// While Northbound rows of the router are to come nothing is said of its VIPs: what is there
// stays.
func TestBalanceWaitsForNorthbound(t *testing.T) {
	nat := ovn.NAT{UUID: "nat", Type: "snat", LogicalIP: "10.11.0.0/24", ExternalIP: "172.24.4.200"}
	c := node(false).tenant(1, 1001).balancer("web", map[string]string{"10.99.0.1:80": "10.10.0.5:8080", "[fd00::1]:80": "[2001:db8:10::5]:8080"}, nil)
	lr := c["nb-r1"].(ovn.LogicalRouter)
	lr.NAT = []ovn.UUID{nat.UUID}
	rows := c.put(lr, ovn.LogicalSwitch{UUID: "nb-public"}, ovn.LogicalSwitch{UUID: "nb-ls-r1"}).load()
	rows.ExpectNB(true)
	tr := NewTranslator(balancedConfig(), indices{}, &loadbalancer.Book{})
	tr.Step(rows, ovn.Dirty{All: true}, true)
	if vips := wanted.Rows(tr.Tables(), intent.VIPs); len(vips) > 0 || !tr.Pending(1001) {
		t.Errorf("VIPs %v before the router's NAT rows are there; pending %t", vips, tr.Pending(1001))
	}
	tr.Step(rows, rows.Apply([]ovn.Change{ovn.Set(nat)}), true)
	if tr.Pending(1001) {
		t.Error("it waits still")
	}
	check(t, "VIPs", []string{"1001 10.99.0.1:80/tcp auto 1/1 served true, route local to VIPs true, announced true",
		"1001 [fd00::1]:80/tcp auto 1/1 served true, route local to VIPs true, announced true"}, balanced(tr))
}
