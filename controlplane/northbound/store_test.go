package northbound_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// schemas are those that each transaction has to fit.
var schemas = map[string][]byte{"23.03": schema.Northbound2303, "25.03": schema.Northbound}

func both(t *testing.T, f func(t *testing.T, server *ovsdbtest.Server)) {
	for name, raw := range schemas {
		t.Run(name, func(t *testing.T) { f(t, ovsdbtest.Start(t, ovsdbtest.Options{Schema: raw})) })
	}
}

func open(t testing.TB, endpoint string) *northbound.Store {
	t.Helper()
	return openConfig(t, northbound.Config{Endpoints: endpoint})
}

func openConfig(t testing.TB, config northbound.Config) *northbound.Store {
	t.Helper()
	s, err := northbound.New(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the store ended: %v", err)
		}
	})
	barrier(t, s)
	return s
}

func barrier(t testing.TB, s *northbound.Store) *northbound.Snapshot {
	t.Helper()
	snapshot, err := s.Barrier(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

func deadline(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), ovsdbtest.Timeout)
	t.Cleanup(cancel)
	return ctx
}

func commit(t testing.TB, s *northbound.Store, f func(tx *northbound.Tx) error) {
	t.Helper()
	if err := s.Commit(deadline(t), "test", f); err != nil {
		t.Fatal(err)
	}
}

func uuidOf(n int) string { return fmt.Sprintf("9c5a1e0c-64a3-4a4e-8e4f-%012d", n) }

func names(s *northbound.Snapshot) []string {
	var out []string
	for lb := range northbound.All[*nb.LoadBalancer](s) {
		out = append(out, lb.Name)
	}
	slices.Sort(out)
	return out
}

func TestTransaction(t *testing.T) {
	both(t, func(t *testing.T, server *ovsdbtest.Server) {
		s := open(t, server.Endpoint())
		commit(t, s, func(tx *northbound.Tx) error {
			tx.Insert(&nb.LogicalSwitch{UUID: uuidOf(1), Name: "n1"})
			tx.Insert(&nb.LoadBalancer{UUID: uuidOf(2), Name: "lb", ExternalIDs: map[string]string{"a": "1", "b": "2"}})
			ls, ok := northbound.One(tx, northbound.SwitchByName, "n1", "name", "load_balancer")
			if !ok {
				return errors.New("a transaction does not see what it inserted")
			}
			ls.LoadBalancer = append(ls.LoadBalancer, uuidOf(2))
			tx.Update(ls, "load_balancer")
			return nil
		})
		snapshot, err := s.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		ls, ok := northbound.One(snapshot, northbound.SwitchOfLoadBalancer, uuidOf(2))
		if !ok || ls.Name != "n1" {
			t.Fatalf("the switch of the load balancer is %+v", ls)
		}
		commit(t, s, func(tx *northbound.Tx) error {
			lb, _ := northbound.Get[*nb.LoadBalancer](tx, uuidOf(2), "external_ids")
			if lb.Name != "" {
				t.Errorf("a column that was not named has %q", lb.Name)
			}
			delete(lb.ExternalIDs, "a")
			lb.ExternalIDs["b"], lb.ExternalIDs["c"] = "3", "4"
			lb.Protocol = new("sctp")
			tx.Update(lb, "external_ids", "protocol")
			return nil
		})
		if lb, _ := northbound.Get[*nb.LoadBalancer](snapshot, uuidOf(2)); !maps.Equal(lb.ExternalIDs, map[string]string{"a": "1", "b": "2"}) {
			t.Errorf("a snapshot has changed: %v", lb.ExternalIDs)
		}
		after := barrier(t, s)
		lb, _ := northbound.One(after, northbound.LoadBalancerByName, "lb")
		if !maps.Equal(lb.ExternalIDs, map[string]string{"b": "3", "c": "4"}) || lb.Protocol == nil || *lb.Protocol != "sctp" {
			t.Errorf("after the update: %+v", lb)
		}
		commit(t, s, func(tx *northbound.Tx) error {
			lb, _ := northbound.One(tx, northbound.LoadBalancerByName, "lb")
			ls, _ := northbound.One(tx, northbound.SwitchOfLoadBalancer, lb.UUID, "load_balancer")
			ls.LoadBalancer = nil
			tx.Update(ls, "load_balancer")
			tx.Delete(lb)
			if _, ok := northbound.One(tx, northbound.LoadBalancerByName, "lb"); ok {
				t.Error("a transaction sees what it has deleted")
			}
			return nil
		})
		after = barrier(t, s)
		if after.Len(nb.LoadBalancerTable) != 0 || len(northbound.Find(after, northbound.SwitchOfLoadBalancer, uuidOf(2))) != 0 {
			t.Errorf("load balancers %q are left", names(after))
		}
	})
}

// What a transaction has read is so when it is committed: each kind of read, changed by somebody
// else between the call of the function and the commit.
func TestReadsAreGuarded(t *testing.T) {
	for name, change := range map[string]struct {
		read  func(tx *northbound.Tx)
		other func(tx *northbound.Tx)
		again bool
	}{
		"a column of a row": {
			func(tx *northbound.Tx) { northbound.Get[*nb.LoadBalancer](tx, uuidOf(1), "vips") },
			func(tx *northbound.Tx) {
				tx.Update(&nb.LoadBalancer{UUID: uuidOf(1), Vips: map[string]string{"[fd00::1]:80": "[fd00::2]:80"}}, "vips")
			}, true,
		},
		"another column of it": {
			func(tx *northbound.Tx) { northbound.Get[*nb.LoadBalancer](tx, uuidOf(1), "vips") },
			func(tx *northbound.Tx) {
				tx.Update(&nb.LoadBalancer{UUID: uuidOf(1), Options: map[string]string{"k": "v"}}, "options")
			}, false,
		},
		"that a row is there": {
			func(tx *northbound.Tx) { northbound.Get[*nb.LoadBalancer](tx, uuidOf(1)) },
			func(tx *northbound.Tx) { tx.Delete(&nb.LoadBalancer{UUID: uuidOf(1)}) }, true,
		},
		"that no row is there": {
			func(tx *northbound.Tx) { northbound.Get[*nb.LoadBalancer](tx, uuidOf(7)) },
			func(tx *northbound.Tx) { tx.Insert(&nb.LoadBalancer{UUID: uuidOf(7)}) }, true,
		},
		"that a name is free": {
			func(tx *northbound.Tx) { northbound.Find(tx, northbound.LoadBalancerByName, "new") },
			func(tx *northbound.Tx) { tx.Insert(&nb.LoadBalancer{UUID: uuidOf(7), Name: "new"}) }, true,
		},
		"another name": {
			func(tx *northbound.Tx) { northbound.Find(tx, northbound.LoadBalancerByName, "new") },
			func(tx *northbound.Tx) { tx.Insert(&nb.LoadBalancer{UUID: uuidOf(7), Name: "newer"}) }, false,
		},
		"a second row of a name": {
			func(tx *northbound.Tx) { northbound.Find(tx, northbound.LoadBalancerByName, "one") },
			func(tx *northbound.Tx) { tx.Insert(&nb.LoadBalancer{UUID: uuidOf(7), Name: "one"}) }, true,
		},
		"a column of a row that an index found": {
			func(tx *northbound.Tx) { northbound.Find(tx, northbound.LoadBalancerByName, "one", "protocol") },
			func(tx *northbound.Tx) {
				tx.Update(&nb.LoadBalancer{UUID: uuidOf(1), Protocol: new("udp")}, "protocol")
			}, true,
		},
		"a unique name": {
			func(tx *northbound.Tx) { northbound.Find(tx, northbound.SwitchPortByName, "port") },
			func(tx *northbound.Tx) { tx.Update(&nb.LogicalSwitchPort{UUID: uuidOf(5), Name: "other"}, "name") }, true,
		},
		"a column of a row with a unique name": {
			func(tx *northbound.Tx) { northbound.Find(tx, northbound.SwitchPortByName, "port", "type") },
			func(tx *northbound.Tx) {
				tx.Update(&nb.LogicalSwitchPort{UUID: uuidOf(5), Type: "router"}, "type")
			}, true,
		},
		"another column of such a row": {
			func(tx *northbound.Tx) { northbound.Find(tx, northbound.SwitchPortByName, "port", "type") },
			func(tx *northbound.Tx) {
				tx.Update(&nb.LogicalSwitchPort{UUID: uuidOf(5), Options: map[string]string{"k": "v"}}, "options")
			}, false,
		},
		"that such a row is there": {
			func(tx *northbound.Tx) { northbound.Find(tx, northbound.SwitchPortByName, "port") },
			func(tx *northbound.Tx) { tx.Update(&nb.LogicalSwitch{UUID: uuidOf(3)}, "ports") }, true,
		},
		"that a unique name is free": {
			func(tx *northbound.Tx) { northbound.Find(tx, northbound.SwitchPortByName, "new") },
			func(tx *northbound.Tx) {
				tx.Insert(&nb.LogicalSwitchPort{UUID: uuidOf(7), Name: "new"})
				tx.Update(&nb.LogicalSwitch{UUID: uuidOf(3), Ports: []string{uuidOf(5), uuidOf(7)}}, "ports")
			}, true,
		},
		"who refers to a row": {
			func(tx *northbound.Tx) { northbound.Find(tx, northbound.SwitchOfLoadBalancer, uuidOf(1)) },
			func(tx *northbound.Tx) {
				tx.Update(&nb.LogicalSwitch{UUID: uuidOf(3), LoadBalancer: []string{uuidOf(1)}}, "load_balancer")
			}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, server *ovsdbtest.Server) {
				s, other := open(t, server.Endpoint()), open(t, server.Endpoint())
				commit(t, s, func(tx *northbound.Tx) error {
					tx.Insert(&nb.LoadBalancer{UUID: uuidOf(1), Name: "one"})
					tx.Insert(&nb.LogicalSwitchPort{UUID: uuidOf(5), Name: "port"})
					tx.Insert(&nb.LogicalSwitch{UUID: uuidOf(3), Name: "n1", Ports: []string{uuidOf(5)}})
					return nil
				})
				barrier(t, other)
				calls := 0
				commit(t, s, func(tx *northbound.Tx) error {
					if calls++; calls > 2 {
						return fmt.Errorf("call %d", calls)
					}
					change.read(tx)
					tx.Insert(&nb.LogicalSwitch{UUID: uuidOf(4), Name: strconv.Itoa(calls)})
					if calls == 1 {
						commit(t, other, func(tx *northbound.Tx) error { change.other(tx); return nil })
					}
					return nil
				})
				want := map[bool]int{false: 1, true: 2}[change.again]
				if calls != want {
					t.Errorf("the function was called %d times, want %d", calls, want)
				}
				ls, _ := northbound.Get[*nb.LogicalSwitch](barrier(t, s), uuidOf(4))
				if ls == nil || ls.Name != strconv.Itoa(calls) {
					t.Errorf("committed is %+v, after %d calls", ls, calls)
				}
			})
		})
	}
}

// Two replicas, many callers, and somebody who writes past them: each count is there once, and the cost
// of a call does not grow with the callers.
func TestCallersAtOnce(t *testing.T) {
	const callers = 400
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Northbound})
	stores := []*northbound.Store{open(t, server.Endpoint()), open(t, server.Endpoint())}
	commit(t, stores[0], func(tx *northbound.Tx) error {
		tx.Insert(&nb.LogicalSwitch{UUID: uuidOf(1), Name: "n1", OtherConfig: map[string]string{"count": "0"}})
		return nil
	})
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			err := stores[i%2].Commit(deadline(t), "count", func(tx *northbound.Tx) error {
				ls, ok := northbound.One(tx, northbound.SwitchByName, "n1", "other_config")
				if !ok {
					return errors.New("the switch is gone")
				}
				n, err := strconv.Atoi(ls.OtherConfig["count"])
				ls.OtherConfig["count"] = strconv.Itoa(n + 1)
				tx.Update(ls, "other_config")
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range 20 {
		server.Transact(`{"op":"mutate","table":"Logical_Switch","where":[],"mutations":[["external_ids","insert",["map",[["n",` + strconv.Quote(time.Now().String()) + `]]]]]}`)
	}
	wg.Wait()
	ls, _ := northbound.One(barrier(t, stores[1]), northbound.SwitchByName, "n1")
	if ls.OtherConfig["count"] != strconv.Itoa(callers) {
		t.Errorf("the count is %s", ls.OtherConfig["count"])
	}
	var conflicts uint64
	for _, s := range stores {
		conflicts += s.Stats().Conflicts
	}
	t.Logf("%d transactions on one column: %d conflicts", callers, conflicts)
	if conflicts == 0 || conflicts > 5*callers {
		t.Error("these are none, and the test proves nothing, or too many")
	}
}

// An error of the function that rests on old rows is not returned.
func TestBarrierBeforeAnError(t *testing.T) {
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Northbound})
	a, b := open(t, server.Endpoint()), open(t, server.Endpoint())
	errNone := errors.New("there is none")
	for i := range 200 {
		name := strconv.Itoa(i)
		commit(t, a, func(tx *northbound.Tx) error { tx.Insert(&nb.LoadBalancer{UUID: uuidOf(i), Name: name}); return nil })
		commit(t, b, func(tx *northbound.Tx) error {
			lb, ok := northbound.One(tx, northbound.LoadBalancerByName, name)
			if !ok {
				return errNone
			}
			tx.Delete(lb)
			return nil
		})
	}
	err := b.Commit(deadline(t), "delete", func(*northbound.Tx) error { return errNone })
	if !errors.Is(err, errNone) {
		t.Errorf("an error that stays: %v", err)
	}
}

func TestServerGoesAndComesBack(t *testing.T) {
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Northbound})
	s := open(t, server.Endpoint())
	commit(t, s, func(tx *northbound.Tx) error {
		tx.Insert(&nb.LoadBalancer{UUID: uuidOf(1), Name: "before"})
		return nil
	})
	server.Kill()
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := s.Barrier(short); !errors.Is(err, northbound.ErrUnavailable) {
		t.Errorf("a barrier without a server: %v", err)
	}
	insert := func(tx *northbound.Tx) error {
		tx.Insert(&nb.LoadBalancer{UUID: uuidOf(2), Name: "meanwhile"})
		return nil
	}
	if err := s.Commit(short, "test", insert); !errors.Is(err, northbound.ErrUnavailable) && !errors.Is(err, ovsdb.ErrOutcomeUnknown) {
		t.Errorf("a write without a server: %v", err)
	}
	if snapshot, err := s.Snapshot(); err != nil || !slices.Equal(names(snapshot), []string{"before"}) {
		t.Errorf("what was read last: %v", err)
	}
	done := make(chan error)
	go func() { done <- s.Commit(deadline(t), "test", insert) }()
	server.Run()
	if err := <-done; err != nil {
		t.Errorf("a write that waits for the server: %v", err)
	}
	if got := names(barrier(t, s)); !slices.Equal(got, []string{"before", "meanwhile"}) {
		t.Errorf("rows %q", got)
	}
}

// The holder of the lock ends between an event and its write: the other one may write then, and
// the first one may not any more.
func TestLeads(t *testing.T) {
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Northbound})
	ctx, end := context.WithCancel(t.Context())
	first, err := northbound.New(northbound.Config{Endpoints: server.Endpoint()})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := first.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	leads(t, first)
	second := open(t, server.Endpoint())
	insert := func(n int) func(tx *northbound.Tx) error {
		return func(tx *northbound.Tx) error {
			tx.Insert(&nb.LoadBalancer{UUID: uuidOf(n), Name: strconv.Itoa(n)})
			return nil
		}
	}
	if err := second.CommitLeading(deadline(t), "test", insert(1)); !errors.Is(err, ovsdb.ErrNotOwner) {
		t.Errorf("without the lock: %v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err = first.CommitLeading(short, "test", func(tx *northbound.Tx) error {
		end()
		<-done
		return insert(2)(tx)
	})
	if err == nil {
		t.Error("a holder that has ended writes")
	}
	leads(t, second)
	if err := second.CommitLeading(deadline(t), "test", insert(3)); err != nil {
		t.Errorf("with the lock: %v", err)
	}
	if got := names(barrier(t, second)); !slices.Equal(got, []string{"3"}) {
		t.Errorf("rows %q", got)
	}
}

func leads(t *testing.T, s *northbound.Store) {
	t.Helper()
	for ctx := deadline(t); !s.Leads(); time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatal("the store has not got the lock")
		}
	}
}
