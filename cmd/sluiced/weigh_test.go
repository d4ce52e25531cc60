package main

import (
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
)

// A name is one load balancer's, with a row for each protocol; two that share it are told apart
// by their _uuid alone.
func TestWeighings(t *testing.T) {
	row := func(uuid ovn.UUID, protocol, backend string) ovn.LoadBalancer {
		return ovn.LoadBalancer{UUID: uuid, Name: "web", Protocol: protocol, VIPs: map[string]string{"10.1.0.1:80": backend}}
	}
	zero := uint16(0)
	for _, tt := range []struct {
		name string
		rows []ovn.LoadBalancer
		want int
		err  string
	}{
		{"one", []ovn.LoadBalancer{row("a", "tcp", "10.0.0.1:80"), row("b", "udp", "10.0.0.2:80")}, 1, ""},
		{"of two protocols", []ovn.LoadBalancer{row("a", "tcp", "10.0.0.1:80"), row("b", "udp", "10.0.0.1:80")}, 2, ""},
		{"of two tenants", []ovn.LoadBalancer{row("a", "tcp", "10.0.0.1:80"), row("b", "tcp", "10.0.0.1:80")}, 0, "bad request: a and b have this name and backend 10.0.0.1:80; say which by its _uuid"},
		{"of two tenants, one with the protocol left out", []ovn.LoadBalancer{row("a", "", "10.0.0.1:80"), row("b", "tcp", "10.0.0.1:80")}, 0, "bad request: a and b have this name and backend 10.0.0.1:80; say which by its _uuid"},
		{"none", []ovn.LoadBalancer{row("a", "tcp", "10.0.0.2:80")}, 0, "it has no backend 10.0.0.1:80: not found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := weighings(tt.rows, nil, netip.MustParseAddrPort("10.0.0.1:80"), &zero)
			said := ""
			if err != nil {
				said = err.Error()
			}
			if len(got) != tt.want || said != tt.err {
				t.Errorf("%d, %q; want %d, %q", len(got), said, tt.want, tt.err)
			}
		})
	}
}
