package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

// In 10.9.0.0/28 the ends, the gateway, and the addresses of ports are taken, in whatever column a port
// has them. What is left is given away once each; another network's ports do not count.
func TestFree(t *testing.T) {
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Northbound})
	store, err := northbound.New(northbound.Config{Endpoints: server.Endpoint()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- store.Run(ctx) }()
	defer func() { cancel(); <-done }()
	limited, end := context.WithTimeout(ctx, ovsdbtest.Timeout)
	defer end()
	here, elsewhere := &nb.LogicalSwitch{UUID: uuidOf(1), Name: "here"}, &nb.LogicalSwitch{UUID: uuidOf(2), Name: "elsewhere"}
	err = store.Commit(limited, "test", func(tx *northbound.Tx) error {
		for i, lsp := range []*nb.LogicalSwitchPort{
			{Addresses: []string{"02:00:00:00:00:02 10.9.0.2 fd00::2", "unknown"}},
			{Addresses: []string{"dynamic"}, DynamicAddresses: new("02:00:00:00:00:03 10.9.0.3")},
			{ExternalIDs: map[string]string{"neutron:cidrs": "10.9.0.4/28 fd00::4/64"}},
			{Type: "router", Addresses: []string{"router"}, Options: map[string]string{"router-port": "lrp"}},
		} {
			lsp.UUID, lsp.Name = uuidOf(10+i), fmt.Sprintf("port-%d", i)
			tx.Insert(lsp)
			here.Ports = append(here.Ports, lsp.UUID)
		}
		for i := range 16 {
			other := &nb.LogicalSwitchPort{UUID: uuidOf(40 + i), Name: fmt.Sprintf("other-%d", i), Addresses: []string{fmt.Sprintf("02:00:00:00:01:%02x 10.9.0.%d", i, i)}}
			tx.Insert(other)
			elsewhere.Ports = append(elsewhere.Ports, other.UUID)
		}
		tx.Insert(here)
		tx.Insert(elsewhere)
		tx.Insert(&nb.LogicalRouterPort{UUID: uuidOf(30), Name: "lrp", MAC: "02:00:00:00:00:01", Networks: []string{"10.9.0.5/28"}})
		tx.Insert(&nb.LogicalRouter{UUID: uuidOf(31), Name: "r", Ports: []string{uuidOf(30)}})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// As within a transaction: each address is taken by the port that was made for the one before.
	nothing := errors.New("nothing is to be committed")
	var got []string
	err = store.Commit(limited, "test", func(tx *northbound.Tx) error {
		got = nil
		n, _ := Find(tx, uuidOf(1))
		s := Subnet{Network: n, CIDR: netip.MustParsePrefix("10.9.0.0/28"), Gateway: netip.MustParseAddr("10.9.0.1")}
		for i := range 20 {
			a, free := Free(tx, s, "seed")
			if again, _ := Free(tx, s, "seed"); again != a {
				t.Errorf("the same seed gives %s and %s", a, again)
			}
			if !free {
				return nothing
			}
			if Used(tx, n, a) {
				t.Errorf("%s is used", a)
			}
			AddPort(tx, uuidOf(60+i), "vip", "p", s, a)
			if !Used(tx, n, a) {
				t.Errorf("%s is not used", a)
			}
			got = append(got, a.String())
		}
		return nothing
	})
	if !errors.Is(err, nothing) {
		t.Error(err)
	}
	var want []string
	for i := 6; i <= 14; i++ {
		want = append(want, fmt.Sprintf("10.9.0.%d", i))
	}
	if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("given away %q, want %q", got, want)
	}
}
