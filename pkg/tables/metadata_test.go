package tables

import (
	"log/slog"
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// A port is told by its address in a namespace only when the namespace knows its MAC address;
// one that has a tap, and one that is there already, wait for nothing.
func TestPortsAwaitTheirNeighbours(t *testing.T) {
	guest := func(n byte) intent.PortAddress {
		return intent.PortAddress{MAC: intent.MAC{0xfa, 0x16, 0x3e, 0, 0, n}, Addr: netip.AddrFrom4([4]byte{10, 0, 0, n})}
	}
	port := func(name string, n byte) intent.MetadataPort {
		return intent.MetadataPort{Port: name, Network: "red", Instance: "i-" + name, Addresses: intent.NewPortAddressSet(guest(n))}
	}
	var journal []string
	networks, log := newDriver[string, intent.MetadataNetwork]("network", &journal), slog.New(slog.DiscardHandler)
	m := NewMetadata(driversOf(func(d Drivers) {
		Drive(d, intent.MetadataNetworks, networks)
		Drive(d, intent.MetadataPorts, newDriver[string, intent.MetadataPort]("port", &journal))
	}), func() bool { return true }, nil,
		Options{Status: status.NewRegistry(log), Log: log})
	tapped := port("tapped", 3)
	tapped.Tap = intent.Tap{Name: "tap", IfIndex: 7}
	want := func(red intent.MetadataNetwork, all ...intent.MetadataPort) {
		m.Pipeline.Update(func() {
			Of(m, intent.MetadataNetworks).Set(map[string]intent.MetadataNetwork{"red": red})
			rows := map[string]intent.MetadataPort{}
			for _, p := range all {
				rows[p.Port] = p
			}
			Of(m, intent.MetadataPorts).Set(rows)
		})
		m.Pipeline.Pass(t.Context())
	}
	expect := func(what string, names ...string) {
		t.Helper()
		_, actual := Of(m, intent.MetadataPorts).Rows()
		for _, n := range names {
			if _, there := actual[n]; !there {
				t.Errorf("%s: %s is not there: %v", what, n, actual)
			}
		}
		if len(actual) != len(names) {
			t.Errorf("%s: %v", what, actual)
		}
	}
	one := intent.MetadataNetwork{Network: "red", Neighbours: intent.NewPortAddressSet(guest(1))}
	two := intent.MetadataNetwork{Network: "red", Neighbours: intent.NewPortAddressSet(guest(1), guest(2))}
	want(one, port("one", 1), tapped)
	expect("the namespace is made", "one", "tapped")
	networks.fail = reconcile.ErrForeign
	want(two, port("one", 1), port("two", 2), tapped)
	expect("the namespace does not know two", "one", "tapped")
	if programmed, err := Of(m, intent.MetadataPorts).State("two"); programmed || err == nil {
		t.Errorf("two is programmed: %t %v", programmed, err)
	}
	// A port is looked at again when the namespace is made at last, and not when its own retry is due.
	networks.fail = nil
	m.Pipeline.Update(func() { Of(m, intent.MetadataNetworks).Touch("red") })
	m.Pipeline.Pass(t.Context())
	m.Pipeline.Pass(t.Context())
	expect("the namespace is made at last", "one", "two", "tapped")
}
