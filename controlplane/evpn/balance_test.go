package evpn

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// balancer adds a load balancer to the router r1, whose Northbound row is known then.
func (c cloud) balancer(name string, vips map[string]string, change func(*ovn.LoadBalancer)) cloud {
	b := ovn.LoadBalancer{UUID: ovn.UUID("lb-" + name), Name: name, VIPs: vips}
	if change != nil {
		change(&b)
	}
	lr, _ := c["nb-r1"].(ovn.LogicalRouter)
	lr.UUID = "nb-r1"
	lr.LoadBalancers = append(slices.Clone(lr.LoadBalancers), b.UUID)
	return c.put(lr, b, ovn.NBGlobal{UUID: "nb-global"})
}

func balancedConfig() Config {
	cfg := testConfig()
	cfg.LoadBalancing = true
	return cfg
}

// balanced says of each VIP what serves it and its live backends, and how its address is
// routed and announced.
func balanced(t *Translator) []string {
	var out []string
	tables := t.Tables()
	for _, b := range t.Balanced() {
		live := 0
		for _, x := range b.VIP.Backends.All() {
			if x.Weight > 0 {
				live++
			}
		}
		key := intent.NewHostKey(b.VIP.Key.VNI, b.VIP.Key.Addr)
		_, announced := wanted.Rows(tables, intent.Announcements)[key]
		row, served := wanted.Rows(tables, intent.VIPs)[b.VIP.Key]
		served = served && !row.OVN
		out = append(out, fmt.Sprintf("%s %s %d/%d served %t, route %s to VIPs %t, announced %t",
			b.VIP.Key, b.Choice.Reason, live, b.VIP.Backends.Len(), served, wanted.Rows(tables, intent.Routes)[key].Kind, wanted.Rows(tables, intent.Routes)[key].VIP, announced))
	}
	return out
}

func TestBalance(t *testing.T) {
	probed := func(b *ovn.LoadBalancer) {
		b.HealthChecks, b.Ports = []ovn.UUID{"check"}, map[netip.Addr]string{addr("10.10.0.5"): "vm-r1", addr("10.10.0.6"): "other"}
	}
	monitor := func(ip, port, status string) ovn.ServiceMonitor {
		return ovn.ServiceMonitor{UUID: ovn.UUID("monitor-" + ip), LogicalPort: port, IP: ip, Protocol: "tcp", Port: 8080, Status: status}
	}
	check80 := ovn.HealthCheck{UUID: "check", VIP: "10.99.0.1:80"}
	two := map[string]string{"10.99.0.1:80": "10.10.0.5:8080,10.10.0.6:8080"}
	for _, tt := range []struct {
		name  string
		cloud cloud
		want  []string
		errs  []string
	}{
		{name: "none", cloud: node(false).tenant(1, 1001)},
		{
			name: "both families", cloud: node(false).tenant(1, 1001).balancer("web", map[string]string{"10.99.0.1:80": "10.10.0.5:8080", "[fd00::1]:80": "[2001:db8:10::5]:8080"}, nil),
			want: []string{"1001 10.99.0.1:80/tcp auto 1/1 served true, route local to VIPs true, announced true", "1001 [fd00::1]:80/tcp auto 1/1 served true, route local to VIPs true, announced true"},
		},
		{
			name: "a backend elsewhere", cloud: node(false).tenant(1, 1001).balancer("web", map[string]string{"10.99.0.1:80": "10.11.0.5:8080"}, nil),
			want: []string{"1001 10.99.0.1:80/tcp backend-outside 1/1 served false, route local to VIPs true, announced true"},
		},
		{
			name: "OVN balances to a backend that is drained here", cloud: node(false).tenant(1, 1001).balancer("web", map[string]string{"10.99.0.1:80": "10.11.0.5:8080"},
				func(b *ovn.LoadBalancer) { b.Options = map[string]string{"sluice-weights": "10.11.0.5:8080=0"} }),
			want: []string{"1001 10.99.0.1:80/tcp backend-outside 0/1 served false, route local to VIPs true, announced true"},
		},
		{
			name: "two VIPs of an address, one is OVN's", cloud: node(false).tenant(1, 1001).balancer("web", map[string]string{"10.99.0.1:80": "10.10.0.5:80", "10.99.0.1:81": "10.11.0.5:80"}, nil),
			want: []string{"1001 10.99.0.1:80/tcp auto 1/1 served true, route local to VIPs true, announced true", "1001 10.99.0.1:81/tcp backend-outside 1/1 served false, route local to VIPs true, announced true"},
		},
		{
			name: "an address of the gateway port's own", cloud: node(false).tenant(1, 1001).balancer("web", map[string]string{"172.24.4.1:80": "10.10.0.5:80"}, nil),
			want: []string{"1001 172.24.4.1:80/tcp auto 1/1 served true, route local to VIPs true, announced true"},
		},
		{
			name: "floating IPs", cloud: node(false).tenant(1, 1001).balancer("web", map[string]string{"172.24.4.99:80": "10.10.0.5:80", "[2001:db8:ff::99]:80": "[2001:db8:10::5]:80"}, nil),
			want: []string{
				"1001 172.24.4.99:80/tcp provider-address 1/1 served false, route kind(0) to VIPs false, announced false",
				"1001 [2001:db8:ff::99]:80/tcp provider-address 1/1 served false, route kind(0) to VIPs false, announced false",
			},
		},
		{
			name: "no backends", cloud: node(false).tenant(1, 1001).balancer("web", map[string]string{"10.99.0.1:80": ""}, nil),
			want: []string{"1001 10.99.0.1:80/tcp no-backends 0/0 served true, route local to VIPs true, announced false"},
		},
		{
			name: "rejects", cloud: node(false).tenant(1, 1001).balancer("web", map[string]string{"10.99.0.1:80": ""}, func(b *ovn.LoadBalancer) { b.Options = map[string]string{"reject": "true"} }),
			want: []string{"1001 10.99.0.1:80/tcp no-backends 0/0 served false, route local to VIPs true, announced true"},
		},
		{
			name: "tells", cloud: node(false).tenant(1, 1001).balancer("web", map[string]string{"10.99.0.1:80": "", "[fd00::1]:80": ""}, func(b *ovn.LoadBalancer) { b.Options = map[string]string{"event": "true"} }),
			want: []string{"1001 10.99.0.1:80/tcp no-backends 0/0 served false, route local to VIPs true, announced true", "1001 [fd00::1]:80/tcp no-backends 0/0 served false, route local to VIPs true, announced true"},
		},
		{
			name: "what cannot be read, and a VIP that is there twice",
			cloud: node(false).tenant(1, 1001).balancer("a", map[string]string{"10.99.0.1:80": "10.10.0.5:80", "x": ""}, nil).
				balancer("b", map[string]string{"10.99.0.1:80": "10.10.0.6:80"}, nil),
			want: []string{"1001 10.99.0.1:80/tcp auto 1/1 served true, route local to VIPs true, announced true"},
			errs: []string{"load-balancer a " + reason.BadLoadBalancer, "load-balancer b " + reason.DuplicateAddress},
		},
		{
			name: "in the network of another router", cloud: node(false).tenant(1, 1001).tenant(2, 1001).
				edit("lrp-in-r2", func(p *ovn.PortBinding) { p.MAC = []string{"02:00:00:01:00:02 10.12.0.1/24"} }).
				balancer("web", map[string]string{"10.12.0.7:80": "10.10.0.5:80", "10.10.0.7:80": "10.10.0.5:80"}, nil),
			want: []string{"1001 10.10.0.7:80/tcp auto 1/1 served true, route local to VIPs true, announced true"},
			errs: []string{"load-balancer web " + reason.Overlap},
		},
		{
			name: "addresses that nobody forwards to",
			cloud: node(false).tenant(1, 1001).balancer("web", map[string]string{"127.0.0.1:80": "10.10.0.5:80", "169.254.1.1:80": "10.10.0.5:80", "255.255.255.255:80": "10.10.0.5:80",
				"[::1]:80": "[2001:db8:10::5]:80", "[fe80::1]:80": "[2001:db8:10::5]:80"}, nil),
			want: []string{
				"1001 127.0.0.1:80/tcp martian-address 1/1 served false, route kind(0) to VIPs false, announced false",
				"1001 169.254.1.1:80/tcp martian-address 1/1 served false, route kind(0) to VIPs false, announced false",
				"1001 255.255.255.255:80/tcp martian-address 1/1 served false, route kind(0) to VIPs false, announced false",
				"1001 [::1]:80/tcp martian-address 1/1 served false, route kind(0) to VIPs false, announced false",
				"1001 [fe80::1]:80/tcp martian-address 1/1 served false, route kind(0) to VIPs false, announced false",
			},
		},
		{
			name:  "one of two is down",
			cloud: node(false).tenant(1, 1001).balancer("web", two, probed).put(check80, monitor("10.10.0.5", "vm-r1", "offline"), monitor("10.10.0.6", "other", "online")),
			want:  []string{"1001 10.99.0.1:80/tcp auto 1/2 served true, route local to VIPs true, announced true"},
		},
		{
			name:  "both are",
			cloud: node(false).tenant(1, 1001).balancer("web", two, probed).put(check80, monitor("10.10.0.5", "vm-r1", "error"), monitor("10.10.0.6", "other", "offline")),
			want:  []string{"1001 10.99.0.1:80/tcp no-backends 0/2 served true, route local to VIPs true, announced false"},
		},
		{
			name:  "nothing is known yet, or of another port",
			cloud: node(false).tenant(1, 1001).balancer("web", two, probed).put(check80, monitor("10.10.0.5", "vm-r1", ""), monitor("10.10.0.6", "vm-r1", "offline")),
			want:  []string{"1001 10.99.0.1:80/tcp auto 2/2 served true, route local to VIPs true, announced true"},
		},
		{
			name:  "another VIP is probed",
			cloud: node(false).tenant(1, 1001).balancer("web", two, probed).put(ovn.HealthCheck{UUID: "check", VIP: "10.99.0.1:81"}, monitor("10.10.0.5", "vm-r1", "offline")),
			want:  []string{"1001 10.99.0.1:80/tcp auto 2/2 served true, route local to VIPs true, announced true"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tr := compute(tt.cloud, balancedConfig())
			check(t, "VIPs", tt.want, balanced(tr))
			errs, _ := complaints(tr)
			check(t, "errors", tt.errs, errs)
			if off := compute(tt.cloud, testConfig()); len(off.Balanced())+len(wanted.Rows(off.Tables(), intent.VIPs)) > 0 {
				t.Errorf("with load balancing off: %v", off.Balanced())
			}
		})
	}
}

// hidden says what leads to backends that no route of their VRF does, and what brings their
// answers.
func hidden(t *Translator) (out []string) {
	for k, r := range wanted.Rows(t.Tables(), intent.BackendRoutes) {
		out = append(out, fmt.Sprintf("%s behind %s", k, r.Gateway.MAC))
	}
	for k := range wanted.Rows(t.Tables(), intent.SteeringFlows) {
		if k.Kind == intent.SteerAnswer {
			out = append(out, fmt.Sprintf("%s %s %d from %s", k.Prefix, k.Protocol, k.Port, k.Gateway.MAC))
		}
	}
	slices.Sort(out)
	return out
}

// Backends whose network is not exposed have ways of their own, and nothing else of them is
// exposed; unless OVN translates them, or their address is another's in the VRF.
func TestBalanceHidden(t *testing.T) {
	const first = "02:00:00:00:00:01"
	web := map[string]string{"10.99.0.1:80": "10.11.0.5:8080", "[fd00::1]:80": "[2001:db8:11::5]:8080"}
	inside := func(c cloud, n int) cloud {
		r := fmt.Sprintf("r%d", n)
		port := pb("lrp-inner-"+r, ovn.TypePatch, "lr-"+r, "02:00:00:03:00:01 10.11.0.1/24 2001:db8:11::1/64")
		port.Options = map[string]string{"peer": "inner-" + r}
		peer := pb("inner-"+r, ovn.TypePatch, "ls-inner-"+r, "router")
		peer.Options = map[string]string{"peer": "lrp-inner-" + r}
		return c.put(ovn.DatapathBinding{UUID: ovn.UUID("ls-inner-" + r), ExternalIDs: map[string]string{"logical-switch": "nb-inner-" + r, "name": "inner-" + r}}, port, peer)
	}
	nat := func(c cloud, logical string) cloud {
		lr := c["nb-r1"].(ovn.LogicalRouter)
		lr.NAT = []ovn.UUID{"nat"}
		return c.put(lr, ovn.NAT{UUID: "nat", Type: "snat", LogicalIP: logical, ExternalIP: "172.24.4.200"})
	}
	way4, way6, answers6 := "1001 10.11.0.5/32 behind "+first, "1001 2001:db8:11::5/128 behind "+first, "2001:db8:11::5/128 tcp 8080 from "+first
	served := func(reason4, reason6 string) []string {
		line := func(vip, reason string) string {
			return fmt.Sprintf("1001 %s/tcp %s 1/1 served %t, route local to VIPs true, announced true", vip, reason, reason == "auto")
		}
		return []string{line("10.99.0.1:80", reason4), line("[fd00::1]:80", reason6)}
	}
	// The load balancer is the second router's.
	onSecond := func(c cloud) cloud {
		c = c.balancer("web", map[string]string{"10.99.0.1:80": "10.10.0.5:8080", "[fd00::1]:80": "[2001:db8:10::7]:8080"}, nil)
		lr := c["nb-r1"].(ovn.LogicalRouter)
		list := lr.LoadBalancers
		lr.LoadBalancers = nil
		return c.put(lr, ovn.LogicalRouter{UUID: "nb-r2", LoadBalancers: list})
	}
	for _, tt := range []struct {
		name   string
		cloud  cloud
		vips   []string
		hidden []string
	}{
		{"in a network that is not exposed", inside(node(false).tenant(1, 1001), 1).balancer("web", web, nil), served("auto", "auto"), []string{"10.11.0.5/32 tcp 8080 from " + first, way4, way6, answers6}},
		{"in no network", node(false).tenant(1, 1001).balancer("web", web, nil), served("backend-outside", "backend-outside"), nil},
		{"translated", nat(inside(node(false).tenant(1, 1001), 1).balancer("web", web, nil), "10.11.0.0/24"), served("backend-outside", "auto"),
			[]string{way6, answers6}},
		{"of a port that is opted out", node(false).tenant(1, 1001).
			edit("vm-r1", func(p *ovn.PortBinding) { p.ExternalIDs = map[string]string{"sluice-expose": "false"} }).
			balancer("web", map[string]string{"10.99.0.1:80": "10.10.0.5:8080", "[fd00::1]:80": "[2001:db8:10::5]:8080"}, nil), served("auto", "auto"),
			[]string{"1001 10.10.0.5/32 behind " + first, "1001 2001:db8:10::5/128 behind " + first}},
		{"that another router exposes", inside(node(false).tenant(1, 1001).tenant(2, 1001), 1).
			edit("lrp-in-r2", func(p *ovn.PortBinding) { p.MAC = []string{"02:00:00:01:00:02 10.11.0.1/24"} }).
			balancer("web", web, nil), served("backend-outside", "auto"), []string{way6, answers6}},
		{"that another router exposes, with a machine of that address", inside(node(false).tenant(1, 1001).tenant(2, 1001), 1).
			edit("lrp-in-r2", func(p *ovn.PortBinding) { p.MAC = []string{"02:00:00:01:00:02 10.11.0.1/24"} }).
			edit("vm-r2", func(p *ovn.PortBinding) { p.MAC = []string{"02:00:00:02:00:05 10.11.0.5"} }).
			balancer("web", web, nil), served("backend-outside", "auto"), []string{way6, answers6}},
		{"that another router's gateway port has", inside(node(false).tenant(1, 1001).tenant(2, 1001), 1).
			edit("cr-lrp-gw-r2", func(p *ovn.PortBinding) { p.MAC = []string{"02:00:00:00:00:02 10.11.0.5/30"} }).
			edit("lrp-gw-r2", func(p *ovn.PortBinding) { p.MAC = []string{"02:00:00:00:00:02 10.11.0.5/30"} }).
			balancer("web", web, nil), served("backend-outside", "auto"), []string{way6, answers6}},
		{"in a network that another router has exposed before", onSecond(node(false).tenant(1, 1001).tenant(2, 1001)), served("backend-outside", "backend-outside"), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tr := compute(tt.cloud, balancedConfig())
			check(t, "VIPs", tt.vips, balanced(tr))
			check(t, "hidden", tt.hidden, hidden(tr))
		})
	}
}

// A change of a load balancer, or of the health of a backend, concerns its router alone.
func TestBalancerTouches(t *testing.T) {
	c := node(false).tenant(1, 1001).tenant(2, 1002).balancer("web", map[string]string{"10.99.0.1:80": "10.10.0.5:8080"}, func(b *ovn.LoadBalancer) {
		b.HealthChecks, b.Ports = []ovn.UUID{"check"}, map[netip.Addr]string{addr("10.10.0.5"): "vm-r1"}
	}).put(ovn.HealthCheck{UUID: "check", VIP: "10.99.0.1:80"})
	rows := c.load()
	tr := NewTranslator(balancedConfig(), indices{}, &loadbalancer.Book{})
	tr.Step(rows, ovn.Dirty{All: true}, true)
	monitor := ovn.ServiceMonitor{UUID: "m", LogicalPort: "vm-r1", IP: "10.10.0.5", Protocol: "tcp", Port: 8080, Status: "offline"}
	for _, step := range []struct {
		change    ovn.Change
		announced bool
	}{
		{ovn.Set(monitor), false},
		{ovn.Delete(ovn.TableServiceMonitor, "m"), true},
		{ovn.Set(monitor), false},
		{ovn.Delete(ovn.TableHealthCheck, "check"), true},
	} {
		dirty := rows.Apply([]ovn.Change{step.change})
		if _, r1 := dirty.Routers["lr-r1"]; !r1 || len(dirty.Routers) != 1 {
			t.Fatalf("%+v touches %v", step.change, dirty.Routers)
		}
		tr.Step(rows, dirty, true)
		if _, yes := wanted.Rows(tr.Tables(), intent.Announcements)[intent.NewHostKey(1001, addr("10.99.0.1"))]; yes != step.announced {
			// Without its health check the load balancer waits for the row, and stays as it was.
			if step.change.Table != ovn.TableHealthCheck {
				t.Errorf("%+v: announced %t", step.change, yes)
			}
		}
	}
}

// What all load balancers of a node share: variables of its chassis, and the size of tables.
func TestBalancersShare(t *testing.T) {
	c := node(false).tenant(1, 1001).tenant(2, 1002).balancer("web", map[string]string{"^VIP:80": "10.10.0.5:^PORT"}, func(b *ovn.LoadBalancer) {
		b.Options = map[string]string{"template": "true"}
	})
	rows := c.load()
	tr := NewTranslator(balancedConfig(), indices{}, &loadbalancer.Book{})
	tr.Step(rows, ovn.Dirty{All: true}, true)
	variables := func(chassis, vip string) ovn.Change {
		return ovn.Set(ovn.TemplateVar{UUID: ovn.UUID("of-" + chassis), Chassis: chassis, Variables: map[string]string{"VIP": vip, "PORT": "8080"}})
	}
	size := func(text string) ovn.Change { return ovn.Set(ovn.NBGlobal{UUID: "nb-global", TableSize: text}) }
	bad := "load-balancer web " + reason.BadLoadBalancer
	for _, step := range []struct {
		change ovn.Change
		want   string
		errs   []string
	}{
		{variables("other", "10.99.0.9"), "", []string{bad}},
		{variables("a1", "10.99.0.1"), "10.99.0.1:80/tcp to [10.10.0.5:8080], 1021 slots", nil},
		{variables("a1", "10.99.0.2"), "10.99.0.2:80/tcp to [10.10.0.5:8080], 1021 slots", nil},
		{size("4093"), "10.99.0.2:80/tcp to [10.10.0.5:8080], 4093 slots", nil},
		{size("many"), "10.99.0.2:80/tcp to [10.10.0.5:8080], 1021 slots", []string{"load-balancer NB_Global " + reason.BadLoadBalancer}},
		{ovn.Delete(ovn.TableTemplateVar, "of-a1"), "", []string{"load-balancer NB_Global " + reason.BadLoadBalancer, bad}},
	} {
		dirty := rows.Apply([]ovn.Change{step.change})
		if _, r1 := dirty.Routers["lr-r1"]; !r1 || len(dirty.Routers) != 1 {
			t.Fatalf("%+v touches %v", step.change, dirty.Routers)
		}
		tr.Step(rows, dirty, true)
		got := ""
		for k, v := range wanted.Rows(tr.Tables(), intent.VIPs) {
			got += fmt.Sprintf("%s/%s to %v, %d slots", intent.FormatEndpoint(k.Addr, k.Port), k.Protocol, v.Backends.All(), v.Slots)
		}
		if got != step.want {
			t.Errorf("%+v: VIPs %q, want %q", step.change, got, step.want)
		}
		errs, _ := complaints(tr)
		check(t, "errors", step.errs, errs)
	}
}
