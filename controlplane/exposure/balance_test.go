package exposure

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// service is a VIP on the provider network with one backend, which is probed.
type service struct {
	vip, backend string
	options      map[string]string
}

const vip4, vip6 = "172.24.0.80", "2001:db8:24::80"

// balance has the router balance. Of each load balancer the backend's port is "web" and the
// name of the VIP.
func (c cloud) balance(services ...service) {
	lr := c["nb-router"].(ovn.LogicalRouter)
	for i, s := range services {
		id := string(rune('a' + i))
		check := ovn.HealthCheck{UUID: ovn.UUID("check-" + id), VIP: s.vip}
		b := ovn.LoadBalancer{UUID: ovn.UUID("lb-" + id), Name: id, VIPs: map[string]string{s.vip: s.backend}, Options: s.options, HealthChecks: []ovn.UUID{check.UUID}}
		if backend, err := netip.ParseAddrPort(s.backend); err == nil {
			b.Ports = map[netip.Addr]string{backend.Addr(): "web-" + id}
		}
		lr.LoadBalancers = append(lr.LoadBalancers, b.UUID)
		c.put(b, check)
	}
	c.put(lr, ovn.NBGlobal{UUID: "nb-global"})
}

func probe(id string, at netip.AddrPort, status string) ovn.ServiceMonitor {
	return ovn.ServiceMonitor{UUID: ovn.UUID("monitor-" + id + at.String()), LogicalPort: "web-" + id, IP: at.Addr().String(), Protocol: "tcp", Port: at.Port(), Status: status}
}

// Addresses of VIPs on the provider network are exposed while a backend of one of them may be
// there, or OVN tells that none is.
func TestBalanced(t *testing.T) {
	one4, one6 := netip.MustParseAddrPort("10.0.0.21:8080"), netip.MustParseAddrPort("[fd00::21]:8080")
	plain := []service{{vip: vip4 + ":80", backend: one4.String()}, {vip: "[" + vip6 + "]:80", backend: one6.String()}}
	with := func(option string) []service {
		out := []service{plain[0], plain[1]}
		for i := range out {
			out[i].options = map[string]string{option: "true"}
		}
		return out
	}
	both := []string{vip4, vip6}
	down := []ovn.ServiceMonitor{probe("a", one4, "offline"), probe("b", one6, "error")}
	nat := func(kind, logical4, logical6, port string) []ovn.NAT {
		return []ovn.NAT{{UUID: "n4", Type: kind, ExternalIP: vip4, LogicalIP: logical4, LogicalPort: port}, {UUID: "n6", Type: kind, ExternalIP: vip6, LogicalIP: logical6, LogicalPort: port}}
	}
	// As Octavia has it: the VIP in the tenant's network, and its floating IP beside it.
	inner := append([]service{{vip: "10.0.0.99:80", backend: one4.String()}, {vip: "[fd00::99]:80", backend: one6.String()}}, plain...)
	innerDown := []ovn.ServiceMonitor{probe("a", one4, "offline"), probe("b", one6, "offline"), probe("c", one4, "offline"), probe("d", one6, "offline")}
	for _, tt := range []struct {
		name     string
		services []service
		probes   []ovn.ServiceMonitor
		nats     []ovn.NAT
		edit     func(cloud)
		off      bool
		want     []string
		silent   []string
	}{
		{name: "nothing is known of the backends", services: plain, want: both},
		{name: "they are up", services: plain, probes: []ovn.ServiceMonitor{probe("a", one4, "online"), probe("b", one6, "online")}, want: both},
		{name: "they are down", services: plain, probes: down, silent: both},
		{name: "there are none", services: []service{{vip: vip4 + ":80"}, {vip: "[" + vip6 + "]:80"}}, silent: both},
		{name: "other VIPs of the addresses have some", probes: down, want: both,
			services: append(plain[:2:2], service{vip: vip4 + ":81", backend: "10.0.0.22:80"}, service{vip: "[" + vip6 + "]:81", backend: "[fd00::22]:80"})},
		{name: "they get no new flows of eBPF", want: both, services: []service{
			{plain[0].vip, plain[0].backend, map[string]string{"sluice-weights": one4.String() + "=0"}}, {plain[1].vip, plain[1].backend, map[string]string{"sluice-weights": one6.String() + "=0"}}}},
		{name: "clients are told", services: with("reject"), probes: down, want: both},
		{name: "somebody is told", services: with("event"), probes: down, want: both},
		{name: "load balancers are not followed", services: plain, probes: down, off: true, want: []string{vip4}}, // of Southbound
		{name: "a VM has the addresses, too", services: plain, probes: down, nats: nat("dnat_and_snat", "10.0.0.5", "fd00::5", "inner"), want: both},
		{name: "packets leave by them", services: plain, probes: down, nats: nat("snat", "10.0.0.0/24", "fd00::/64", ""), want: both},
		{name: "floating IPs of VIPs", services: inner, nats: nat("dnat_and_snat", "10.0.0.99", "fd00::99", "vip"), want: both},
		{name: "floating IPs of VIPs that are down", services: inner, probes: innerDown, nats: nat("dnat_and_snat", "10.0.0.99", "fd00::99", "vip"), silent: both},
		{name: "a VM has the VIP's address", services: inner, probes: innerDown, nats: nat("dnat_and_snat", "10.0.0.99", "fd00::99", "inner"), want: both},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := sample()
			c.northbound(tt.nats...)
			c.balance(tt.services...)
			for _, m := range tt.probes {
				c.put(m)
			}
			c.edit("lsp-gw", func(p *ovn.PortBinding) {
				p.NATAddresses = []string{`02:00:00:00:00:01 172.24.0.11 ` + vip4 + ` is_chassis_resident("cr-gw")`}
			})
			x := NewTranslator(Config{FloatingIPs: true, Northbound: true, LoadBalancing: !tt.off, NextHopMAC: all.NextHopMAC}, &indices{}, &loadbalancer.Book{})
			x.Step(c.load(), nobody{}, complete)
			var want, silent []string
			for _, a := range tt.want {
				want = append(want, a+" br-ex/02:00:00:00:00:01")
			}
			for _, a := range tt.silent {
				silent = append(silent, "floating-ip "+a+" no-live-backend")
			}
			if diff := cmp.Diff(want, exposed(x.Tables())); diff != "" {
				t.Errorf("exposed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(silent, told(x)); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			checkTables(t, x.Tables(), nobody{})
		})
	}
}

// What is known of backends is followed, and load balancers that are to come take nothing away.
func TestBalancedSteps(t *testing.T) {
	at := netip.MustParseAddrPort("[fd00::21]:8080")
	c := sample()
	c.northbound()
	c.balance(service{vip: "[" + vip6 + "]:80", backend: at.String()})
	rows := c.load()
	x := NewTranslator(Config{FloatingIPs: true, Northbound: true, LoadBalancing: true, NextHopMAC: all.NextHopMAC}, &indices{}, &loadbalancer.Book{})
	there := func() bool {
		for k := range wanted.Rows(x.Tables(), intent.Routes) {
			if k.Prefix.Addr() == netip.MustParseAddr(vip6) {
				return true
			}
		}
		return false
	}
	x.Step(rows, nobody{}, complete)
	for _, step := range []struct {
		change ovn.Change
		want   bool
	}{
		{ovn.Set(probe("a", at, "online")), true},
		{ovn.Set(probe("a", at, "offline")), false},
		{ovn.Set(probe("a", at, "online")), true},
		{ovn.Set(probe("a", at, "offline")), false},
		{ovn.Delete(ovn.TableServiceMonitor, probe("a", at, "").UUID), true},
	} {
		dirty := rows.Apply([]ovn.Change{step.change})
		x.Step(rows, nobody{}, Change{Rows: dirty.Exposure, Complete: true, Northbound: true})
		if there() != step.want {
			t.Errorf("%+v: exposed %t", step.change, there())
		}
	}
	rows.ExpectNB(true)
	x.Step(rows, nobody{}, Change{Rows: rows.Apply([]ovn.Change{ovn.Delete(ovn.TableLoadBalancer, "lb-a")}).Exposure, Complete: true, Northbound: true})
	if !x.Pending() {
		t.Error("not pending while a load balancer is to come")
	}
}
