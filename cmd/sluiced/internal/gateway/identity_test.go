package gateway

import (
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/link"
)

func TestKeptVTEP(t *testing.T) {
	a, p := netip.MustParseAddr, netip.MustParsePrefix
	lo := func(words ...string) (out []link.Address) {
		for _, w := range words {
			out = append(out, link.Address{Link: "lo", Prefix: p(w), Global: true})
		}
		return append(out, link.Address{Link: "lo", Prefix: p("127.0.0.1/8")}, link.Address{Link: "eth0", Prefix: p("192.0.2.9/24"), Global: true})
	}
	encap := Facts{EncapIP: a("192.0.2.1")}
	for _, tc := range []struct {
		name      string
		now       string
		was, next Facts
		has       bool
		list      []link.Address
		want      string
		choose    bool
	}{
		{"nothing changes", "10.0.0.1", encap, encap, true, lo("10.0.0.1/32"), "10.0.0.1", false},
		{"another one came before it", "10.0.0.1", encap, encap, true, lo("10.0.0.2/32", "10.0.0.1/32"), "10.0.0.1", false},
		{"on another device", "10.0.0.1", encap, encap, true, lo(), "10.0.0.1", false},
		{"gone", "10.0.0.1", encap, encap, false, lo(), "10.0.0.1", false},
		{"gone, IPv6", "fd00::1", encap, encap, false, lo(), "fd00::1", false},
		{"replaced", "10.0.0.1", encap, encap, false, lo("10.0.0.2/32"), "10.0.0.2", false},
		{"replaced, IPv6", "fd00::1", encap, encap, false, lo("10.0.0.2/32", "fd00::2/128"), "fd00::2", false},
		{"none of its family", "10.0.0.1", encap, encap, false, lo("fd00::2/128"), "10.0.0.1", false},
		{"ovn-encap-ip of a VTEP from elsewhere", "10.0.0.1", encap, Facts{EncapIP: a("192.0.2.2")}, true, lo("10.0.0.1/32"), "10.0.0.1", false},
		{"ovn-encap-ip", "192.0.2.1", encap, Facts{EncapIP: a("192.0.2.2")}, true, lo(), "192.0.2.1", true},
		{"ovn-encap-ip is gone, and lo has one", "192.0.2.1", encap, encap, false, lo("10.0.0.1/32"), "10.0.0.1", false},
	} {
		if got, choose := keptVTEP(a(tc.now), tc.was, tc.next, tc.has, tc.list); got != a(tc.want) || choose != tc.choose {
			t.Errorf("%s: %s, %v", tc.name, got, choose)
		}
	}
}
