package role

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/link"
)

func TestHostAddresses(t *testing.T) {
	p, a := netip.MustParsePrefix, netip.MustParseAddr
	got := hostAddresses([]link.Address{
		{Link: "br-ex", Prefix: p("172.24.4.1/24"), Global: true},
		{Link: "br-ex", Prefix: p("2001:db8::1/64"), Global: true},
		{Link: "br-ex", Prefix: p("fe80::1/64")},
		{Link: "br-ex.7", Below: "br-ex", Prefix: p("10.7.0.1/24"), Global: true},
		{Link: "lo", Prefix: p("127.0.0.1/8")},
	})
	want := ovn.HostAddresses{"br-ex": {a("172.24.4.1"), a("2001:db8::1"), a("10.7.0.1")}, "br-ex.7": {a("10.7.0.1")}}
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got %v, want %v", got, want)
	}
}
