package octavia

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia/network"
	"github.com/ovn-sluice/sluice/controlplane/octavia/rowform"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

// replica is a store with a Reactor, until its end.
func replica(t *testing.T, endpoint string) (s *northbound.Store, end func()) {
	t.Helper()
	s, err := northbound.New(northbound.Config{Endpoints: endpoint})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	go func() { done <- NewReactor(s, slog.New(slog.DiscardHandler)).Run(ctx) }()
	ended := false
	end = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(end)
	return s, end
}

// The list at the end of the source design, by events alone: nobody calls for what changes. The
// replica that acts ends in between, and the other one goes on.
func TestReactions(t *testing.T) {
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Northbound})
	first, end := replica(t, server.Endpoint())
	wait := func(what string, ok func() bool) {
		t.Helper()
		for until := time.Now().Add(ovsdbtest.Timeout); !ok(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("waited in vain for %s", what)
			}
		}
	}
	wait("the first to lead", first.Leads)
	second, _ := replica(t, server.Endpoint())
	c := cloud{t, second}
	c.commit(func(tx *northbound.Tx) error {
		for n := 1; n <= 3; n++ {
			tx.Insert(&nb.LogicalSwitch{UUID: uuidOf(n), Name: fmt.Sprintf("N%d", n)})
		}
		return nil
	})
	c.router(1, 1, 2)
	port := uuidOf(70)
	c.commit(func(tx *northbound.Tx) error {
		for n := 1; n <= 2; n++ {
			subnets := network.Subnets(tx, c.network(tx, n))
			v := rowform.VIP{Address: netip.AddrFrom4([4]byte{10, 0, byte(n), 10}), Port: uuidOf(69 + n)}
			network.AddPort(tx, v.Port, PortName(fmt.Sprintf("lb%d", n)), "p", subnets[0], v.Address)
			b := New(tx, fmt.Sprintf("lb%d", n), uuidOf(10+n), c.network(tx, n), v)
			b.SetAttributes(Attributes{Subnet: subnets[0].ID, OwnPort: true})
			b.Save()
		}
		return nil
	})
	on := func(uuid string, want ...string) func() bool {
		return func() bool { got, _ := c.where(uuid); return slices.Equal(got, want) }
	}
	wait("both everywhere", func() bool { return on(uuidOf(11), "N1", "N2", "R1")() && on(uuidOf(12), "N1", "N2", "R1")() })
	c.commit(func(tx *northbound.Tx) error { return connect(tx, 1, 3) })
	wait("N3 to have both", func() bool {
		return on(uuidOf(11), "N1", "N2", "N3", "R1")() && on(uuidOf(12), "N1", "N2", "N3", "R1")()
	})
	end()
	c.commit(func(tx *northbound.Tx) error { return disconnect(tx, 1, 2) })
	wait("the second to lead", second.Leads)
	wait("N2 to be off", func() bool { return on(uuidOf(11), "N1", "N3", "R1")() && on(uuidOf(12), "N2")() })
	if _, counts := c.where(uuidOf(11)); counts != `{"N1": 1} R1` {
		t.Errorf("counts %s", counts)
	}
	// Somebody removes the port of a VIP.
	c.commit(func(tx *northbound.Tx) error { network.RemovePort(tx, port, PortName("lb1")); return nil })
	wait("the port to be back", func() bool {
		s, err := second.Snapshot()
		return err == nil && len(northbound.Find(s, northbound.SwitchPortByName, port)) == 1
	})
	// A load balancer of the provider's is left as the provider wrote it.
	c.commit(func(tx *northbound.Tx) error {
		tx.Insert(&nb.LoadBalancer{UUID: uuidOf(15), Name: "provider", ExternalIDs: map[string]string{"neutron:vip": "10.0.1.20", "ls_refs": `{"N1": 1}`, "enabled": "True"}})
		return nil
	})
	time.Sleep(3 * reactPause)
	if got, counts := c.where(uuidOf(15)); len(got) != 0 || counts != `{"N1": 1} ` {
		t.Errorf("the provider's load balancer is on %q, %s", got, counts)
	}
	// Then it is quiet: what is settled is not written again.
	before := second.Stats().Commits
	c.commit(func(tx *northbound.Tx) error {
		tx.Update(&nb.LogicalSwitch{UUID: uuidOf(3), ExternalIDs: map[string]string{"a": "b"}}, "external_ids")
		return nil
	})
	time.Sleep(3 * reactPause)
	if n := second.Stats().Commits; n != before+1 {
		t.Errorf("%d transactions where nothing was to be done", n-before-1)
	}
}

// The replica that leads ends between an event and its write: its lock ends with its connection, and
// the next one writes. Until then the database refuses what another one would write.
func TestHolderEndsBeforeItsWrite(t *testing.T) {
	both(t, func(t *testing.T, raw []byte) {
		server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: raw})
		store := func() (cloud, func()) {
			s, err := northbound.New(northbound.Config{Endpoints: server.Endpoint()})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() { done <- s.Run(ctx); close(done) }()
			end := func() {
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
			t.Cleanup(end)
			return cloud{t, s}, end
		}
		holder, end := store()
		holder.reactor() // it never looks
		c, _ := store()
		c.commit(func(tx *northbound.Tx) error {
			for n := 1; n <= 3; n++ {
				tx.Insert(&nb.LogicalSwitch{UUID: uuidOf(n), Name: fmt.Sprintf("N%d", n)})
			}
			return nil
		})
		c.router(1, 1, 2)
		c.balancer(1)
		c.commit(func(tx *northbound.Tx) error { return connect(tx, 1, 3) })
		ctx, cancel := context.WithTimeout(context.Background(), ovsdbtest.Timeout)
		defer cancel()
		next := NewReactor(c.store, slog.New(slog.DiscardHandler))
		commits := c.store.Stats().Commits
		look := func() uint64 {
			s, err := c.store.Barrier(ctx)
			if err != nil {
				t.Fatal(err)
			}
			next.look(ctx, s, nil)
			return c.store.Stats().Commits - commits
		}
		if n := look(); n != 0 || c.store.Leads() {
			t.Errorf("%d writes of one that does not lead", n)
		}
		c.expect(uuidOf(11), []string{"N1", "N2", "R1"}, `{"N1": 1} R1`)
		end()
		c.reactor() // waits until it leads
		if n := look(); n != 1 {
			t.Errorf("%d writes", n)
		}
		c.expect(uuidOf(11), []string{"N1", "N2", "N3", "R1"}, `{"N1": 1} R1`)
	})
}

// Ports of a load balancer whose rows somebody deletes are removed; those of the others stay.
func TestRowsAreDeleted(t *testing.T) {
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Northbound})
	store, _ := replica(t, server.Endpoint())
	c := cloud{t, store}
	c.commit(func(tx *northbound.Tx) error {
		tx.Insert(&nb.LogicalSwitch{UUID: uuidOf(1), Name: "N1", OtherConfig: map[string]string{"subnet": "10.0.1.0/24"}})
		return nil
	})
	c.commit(func(tx *northbound.Tx) error {
		subnet := network.Subnets(tx, c.network(tx, 1))[0]
		for n := 1; n <= 2; n++ {
			v, name := rowform.VIP{Address: netip.AddrFrom4([4]byte{10, 0, 1, byte(n + 9)}), Port: uuidOf(69 + n)}, fmt.Sprintf("lb%d", n)
			network.AddPort(tx, v.Port, PortName(name), "p", subnet, v.Address)
			b := New(tx, name, uuidOf(10+n), c.network(tx, 1), v)
			b.SetAttributes(Attributes{Subnet: subnet.ID, OwnPort: true})
			b.Save()
		}
		return nil
	})
	c.commit(func(tx *northbound.Tx) error { tx.Delete(&nb.LoadBalancer{UUID: uuidOf(11)}); return nil })
	for deadline := time.Now().Add(ovsdbtest.Timeout); ; time.Sleep(10 * time.Millisecond) {
		s, err := store.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		left := network.Owners(s)
		if slices.Equal(left, []string{"lb2"}) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("ports of %q", left)
		}
	}
}
