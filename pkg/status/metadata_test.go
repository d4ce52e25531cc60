package status

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// What a person may call a VM's port.
func TestFindMetadataPort(t *testing.T) {
	guests := func(addrs ...string) intent.PortAddressSet {
		var all []intent.PortAddress
		for _, a := range addrs {
			all = append(all, intent.PortAddress{Addr: netip.MustParseAddr(a)})
		}
		return intent.NewPortAddressSet(all...)
	}
	m := Metadata{Ports: []MetadataPort{
		{Port: "p1", Instance: "red", Network: "n1", Served: FromTap, Device: "tap1", Addresses: guests("10.0.0.5", "fd00::5")},
		{Port: "p2", Instance: "red", Network: "n2", Served: FromTap, Device: "tap1", VLAN: 7, Addresses: guests("10.0.0.6")},
		{Port: "p3", Instance: "blue", Network: "n2", Served: FromNamespace, Device: "tapn2", Addresses: guests("10.0.0.5")},
		{Port: "p4", Network: "n2", Served: FromNamespace, Device: "tapn2"},
		{Port: "p5", Network: "n2", Served: LeftToOVN},
	}}
	for name, want := range map[string]string{
		"p2": "p2", "red": "p1", "blue": "p3", "tap1": "p1", "tap1.7": "p2", "10.0.0.6": "p2", "fd00::5": "p1", "FD00:0::5": "p1",
		"": "", "tapn2": "", "10.0.0.7": "", "p": "", "n2": "",
	} {
		p, err := m.Find(name)
		got := ""
		if p != nil {
			got = p.Port
		}
		if err != nil || got != want {
			t.Errorf("%q: %q %v", name, got, err)
		}
	}
	p, err := m.Find("10.0.0.5")
	if p != nil || err == nil || !strings.Contains(err.Error(), "p1 of instance red on network n1; p3 of instance blue on network n2") {
		t.Errorf("%v %v", p, err)
	}
}
