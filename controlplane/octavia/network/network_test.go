package network

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	neutronNet = "2526c68a-5a9e-484c-8e00-0716388f6563"
	subnet4    = "52b6299c-6e38-4226-a275-77370296f257"
	subnet6    = "973a201a-8787-4f6e-9b8f-ab9f93c31f44"
)

func uuidOf(n int) string { return fmt.Sprintf("9c5a1e0c-64a3-4a4e-8e4f-%012d", n) }

func TestSubnets(t *testing.T) {
	for name, raw := range map[string][]byte{"23.03": schema.Northbound2303, "25.03": schema.Northbound} {
		t.Run(name, func(t *testing.T) { testSubnets(t, raw) })
	}
}

func testSubnets(t *testing.T, raw []byte) {
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: raw})
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
	err = store.Commit(limited, "test", func(tx *northbound.Tx) error {
		connected := func(n int, ls *nb.LogicalSwitch, lrp *nb.LogicalRouterPort) {
			lrp.UUID, lrp.Name = uuidOf(n), fmt.Sprintf("lrp-%d", n)
			tx.Insert(lrp)
			tx.Insert(&nb.LogicalSwitchPort{UUID: uuidOf(n + 1), Name: fmt.Sprintf("lsp-%d", n), Type: "router", Options: map[string]string{"router-port": lrp.Name}})
			tx.Insert(&nb.LogicalSwitchPort{UUID: uuidOf(n + 2), Name: fmt.Sprintf("vm-%d", n)})
			ls.Ports = []string{uuidOf(n + 1), uuidOf(n + 2)}
			tx.Insert(ls)
		}
		connected(10, &nb.LogicalSwitch{UUID: uuidOf(1), Name: "neutron-" + neutronNet, ExternalIDs: map[string]string{"neutron:network_name": "net-a"}},
			&nb.LogicalRouterPort{MAC: "02:00:00:00:00:01", Networks: []string{"10.0.0.1/24", "fd00:a::1/64"}, ExternalIDs: map[string]string{"neutron:subnet_ids": subnet4 + " " + subnet6}})
		connected(20, &nb.LogicalSwitch{UUID: uuidOf(2), Name: "red"},
			&nb.LogicalRouterPort{MAC: "02:00:00:00:00:02", Networks: []string{"10.1.0.1/24", "fd00:b::1/64"}})
		connected(30, &nb.LogicalSwitch{UUID: uuidOf(3), Name: "own", OtherConfig: map[string]string{"subnet": "10.2.0.0/24", "ipv6_prefix": "fd00:c::"}},
			&nb.LogicalRouterPort{MAC: "02:00:00:00:00:03", Networks: []string{"10.2.0.254/24"}})
		tx.Insert(&nb.LogicalSwitch{UUID: uuidOf(4), Name: "alone"})
		// Strong references keep rows of ports.
		tx.Insert(&nb.LogicalRouter{UUID: uuidOf(5), Name: "r", Ports: []string{uuidOf(10), uuidOf(20), uuidOf(30)}})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		id, name string
		subnets  []string // with their gateways
		ids      []string
	}{
		{neutronNet, "net-a", []string{"10.0.0.0/24 10.0.0.1", "fd00:a::/64 fd00:a::1"}, []string{subnet4, subnet6}},
		{uuidOf(2), "red", []string{"10.1.0.0/24 10.1.0.1", "fd00:b::/64 fd00:b::1"}, nil},
		{uuidOf(3), "own", []string{"10.2.0.0/24 10.2.0.254", "fd00:c::/64 invalid IP"}, nil},
		{uuidOf(4), "alone", nil, nil},
	} {
		n, ok := Find(s, want.id)
		if !ok || n.Name != want.name || n.Neutron != (want.id == neutronNet) {
			t.Errorf("network %s is %+v", want.id, n)
		}
		subnets := Subnets(s, n)
		if len(subnets) != len(want.subnets) {
			t.Errorf("network %s has the subnets %+v", want.name, subnets)
			continue
		}
		for i, sub := range subnets {
			if got := fmt.Sprintf("%s %s", sub.CIDR, sub.Gateway); got != want.subnets[i] {
				t.Errorf("network %s: subnet %s, want %s", want.name, got, want.subnets[i])
			}
			if want.ids != nil && sub.ID != want.ids[i] {
				t.Errorf("network %s: subnet %s has the ID %s", want.name, sub.CIDR, sub.ID)
			}
			if found, ok := FindSubnet(s, sub.ID); !ok || found != sub {
				t.Errorf("subnet %s is found as %+v", sub.ID, found)
			}
		}
	}
	if len(All(s)) != 4 {
		t.Errorf("networks %+v", All(s))
	}
	for _, id := range []string{uuidOf(1), uuidOf(9), "", "red", netip.Addr{}.String()} {
		if n, ok := Find(s, id); ok {
			t.Errorf("%q is network %+v", id, n)
		}
		if n, ok := FindSubnet(s, id); ok {
			t.Errorf("%q is subnet %+v", id, n)
		}
	}
}
