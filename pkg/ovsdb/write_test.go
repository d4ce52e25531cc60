package ovsdb_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

// northbounds are the schemas that what is written has to fit.
var northbounds = map[string][]byte{"23.03": schema.Northbound2303, "25.03": schema.Northbound}

func nbConfig(endpoints string) ovsdb.Config {
	c := sbConfig(endpoints)
	c.Database = nb.Database()
	c.Tables = ovsdb.Tables{nb.LoadBalancerTable: nil, nb.LogicalSwitchTable: {"name", "load_balancer", "external_ids"}}
	c.Conditions = ovsdb.Conditions{nb.LoadBalancerTable: {ovsdb.All()}, nb.LogicalSwitchTable: {ovsdb.All()}}
	return c
}

// both runs a test on each schema.
func both(t *testing.T, f func(t *testing.T, server *ovsdbtest.Server)) {
	for name, raw := range northbounds {
		t.Run(name, func(t *testing.T) { f(t, ovsdbtest.Start(t, ovsdbtest.Options{Schema: raw})) })
	}
}

func uuidOf(n int) string { return fmt.Sprintf("0b8b25c4-7b1c-4f5f-9f0a-%012d", n) }

func ofOwner(owner string) ovsdb.Clause { return ovsdb.IncludesPair("external_ids", "owner", owner) }

func owned(uuid, name, owner string) *nb.LoadBalancer {
	return &nb.LoadBalancer{UUID: uuid, Name: name, ExternalIDs: map[string]string{"owner": owner}}
}

func TestConditionsOfOperations(t *testing.T) {
	both(t, func(t *testing.T, server *ovsdbtest.Server) {
		s, r := run(t, nbConfig(server.Endpoint()))
		r.waitSync()
		a, b, c := uuidOf(1), uuidOf(2), uuidOf(3)
		commit(t, s,
			ovsdb.WaitNone(nb.LoadBalancerTable, ovsdb.All()),
			ovsdb.InsertAs(owned(a, "a", "x")), ovsdb.InsertAs(owned(b, "b", "x")), ovsdb.InsertAs(owned(c, "c", "y")),
			ovsdb.InsertAs(&nb.LogicalSwitch{UUID: uuidOf(4), Name: "ls", LoadBalancer: []string{a, c}}))
		names := func(of ...string) {
			t.Helper()
			if got := r.balancers(); !slices.Equal(got, of) {
				t.Errorf("load balancers %q, want %q", got, of)
			}
		}
		names("a", "b", "c")
		got := commit(t, s, ovsdb.SetKeys(nb.LoadBalancerTable, "", "options", map[string]string{"k": "v"}).Where(ofOwner("x")))
		if got[0].Count != 2 {
			t.Errorf("%d rows of two were changed", got[0].Count)
		}
		got = commit(t, s, ovsdb.Update(&nb.LoadBalancer{Name: "z"}, "name").Where(ofOwner("x"), ovsdb.Equal("name", "b")))
		if got[0].Count != 1 {
			t.Errorf("%d rows match both clauses, want one", got[0].Count)
		}
		names("a", "c", "z")
		commit(t, s, ovsdb.WaitExists(nb.LoadBalancerTable, a), ovsdb.WaitNone(nb.LoadBalancerTable, ofOwner("nobody")),
			ovsdb.Wait(&nb.LoadBalancer{Name: "z"}, "name").Where(ovsdb.Equal("name", "z")))
		if got := commit(t, s, ovsdb.Delete(nb.LoadBalancerTable, "").Where(ofOwner("x"))); got[0].Count != 2 {
			t.Errorf("%d rows of two were deleted", got[0].Count)
		}
		names("c")

		for name, op := range map[string]ovsdb.Operation{
			"a row that is gone":      ovsdb.WaitExists(nb.LoadBalancerTable, a),
			"a row that matches":      ovsdb.WaitNone(nb.LoadBalancerTable, ofOwner("y"), ovsdb.Equal("name", "c")),
			"a table with a row":      ovsdb.WaitNone(nb.LoadBalancerTable, ovsdb.All()),
			"another value":           ovsdb.Wait(&nb.LoadBalancer{UUID: c, Name: "d"}, "name"),
			"a default value":         ovsdb.Wait(&nb.LoadBalancer{UUID: c}, "name"),
			"an empty map":            ovsdb.Wait(&nb.LoadBalancer{UUID: c}, "external_ids"),
			"a map with less in it":   ovsdb.Wait(&nb.LogicalSwitch{UUID: uuidOf(4)}, "load_balancer"),
			"no row of the condition": ovsdb.Wait(&nb.LoadBalancer{Name: "c"}, "name").Where(ovsdb.Equal("name", "nobody")),
		} {
			_, err := s.Commit(t.Context(), op, ovsdb.Delete(nb.LoadBalancerTable, c))
			if !errors.Is(err, ovsdb.ErrConflict) {
				t.Errorf("%s: %v, want a conflict", name, err)
			}
		}
		names("c")
		for name, op := range map[string]ovsdb.Operation{
			"no clause":       ovsdb.Delete(nb.LoadBalancerTable, "").Where(),
			"unknown column":  ovsdb.Delete(nb.LoadBalancerTable, "").Where(ovsdb.Equal("nosuch", "x")),
			"wrong type":      ovsdb.Delete(nb.LoadBalancerTable, "").Where(ovsdb.Equal("name", 1)),
			"UUID of nothing": ovsdb.InsertAs(&nb.LoadBalancer{UUID: "a"}),
		} {
			if _, err := s.Transact(t.Context(), op); err == nil {
				t.Errorf("%s: no error", name)
			}
		}
	})
}

// A create whose outcome is not known is repeated: it is there once.
func TestInsertIsRepeated(t *testing.T) {
	both(t, func(t *testing.T, server *ovsdbtest.Server) {
		s, r := run(t, nbConfig(server.Endpoint()))
		r.waitSync()
		create := ovsdb.InsertAs(owned(uuidOf(1), "a", "x"))
		if got := commit(t, s, create); got[0].UUID != uuidOf(1) {
			t.Errorf("the row has the UUID %s", got[0].UUID)
		}
		if _, err := s.Commit(t.Context(), create); !errors.Is(err, ovsdb.ErrExists) {
			t.Errorf("the second insert: %v", err)
		}
		if got := r.balancers(); len(got) != 1 {
			t.Errorf("rows %q", got)
		}
	})
}

// Columns that a server lacks are left out where the writer allows it, and refused by name else.
func TestColumnsThatAServerLacks(t *testing.T) {
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: []byte(strings.Replace(string(schema.Northbound), `"selection_fields"`, `"selected_fields"`, 1))})
	s, r := run(t, nbConfig(server.Endpoint()))
	r.waitSync()
	row := &nb.LoadBalancer{UUID: uuidOf(1), Name: "a", SelectionFields: []string{"ip_src"}}
	if _, err := s.Transact(t.Context(), ovsdb.InsertAs(row)); err == nil || !strings.Contains(err.Error(), "selection_fields") {
		t.Errorf("a column that the server lacks: %v", err)
	}
	commit(t, s, ovsdb.InsertAs(row).Optional("selection_fields"))
	commit(t, s, ovsdb.Wait(row, "name", "selection_fields").Optional("selection_fields"))
	if got := r.balancers(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("rows %q", got)
	}
}

// What a server sends before its reply is at the handler when Commit returns: the change of the
// transaction, and the one that it conflicted with. It rests on the order in which ovsdb-server
// sends.
func TestCommitIsReadBack(t *testing.T) {
	both(t, func(t *testing.T, server *ovsdbtest.Server) {
		s, r := run(t, nbConfig(server.Endpoint()))
		other, seen := run(t, nbConfig(server.Endpoint()))
		r.waitSync()
		seen.waitSync()
		commit(t, s, ovsdb.InsertAs(owned(uuidOf(0), "0", "x")))
		for i := range 300 {
			before, after := &nb.LoadBalancer{UUID: uuidOf(0), Name: fmt.Sprint(i)}, &nb.LoadBalancer{UUID: uuidOf(0), Name: fmt.Sprint(i + 1)}
			commit(t, s, ovsdb.Wait(before, "name"), ovsdb.Update(after, "name"))
			if got := r.balancers(); !slices.Equal(got, []string{after.Name}) {
				t.Fatalf("after the reply the handler has %q, not %s", got, after.Name)
			}
			_, err := other.Commit(t.Context(), ovsdb.Wait(before, "name"), ovsdb.Update(before, "name"))
			if !errors.Is(err, ovsdb.ErrConflict) {
				t.Fatalf("a write from older rows: %v", err)
			}
			if got := seen.balancers(); !slices.Equal(got, []string{after.Name}) {
				t.Fatalf("after the conflict the handler has %q, not %s", got, after.Name)
			}
			if _, err := other.Commit(t.Context()); err != nil {
				t.Fatalf("an empty transaction: %v", err)
			}
		}
	})
}

// Commits of many callers are each read back while others write.
func TestCommitsAtOnce(t *testing.T) {
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Northbound})
	s, r := run(t, nbConfig(server.Endpoint()))
	r.waitSync()
	var wg sync.WaitGroup
	for caller := range 8 {
		wg.Go(func() {
			for i := range 40 {
				name := fmt.Sprintf("%d-%d", caller, i)
				if _, err := s.Commit(t.Context(), ovsdb.InsertAs(owned(uuidOf(caller*100+i), name, "x"))); err != nil {
					t.Error(err)
				}
				if !slices.Contains(r.balancers(), name) {
					t.Errorf("%s is committed and not there", name)
				}
			}
		})
	}
	wg.Wait()
	if n := len(r.balancers()); n != 320 {
		t.Errorf("%d rows of 320", n)
	}
}

func TestContextEndsWithoutAnswer(t *testing.T) {
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Northbound})
	s, r := run(t, nbConfig(server.Endpoint()))
	r.waitSync()
	server.Freeze()
	defer server.Thaw()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Commit(ended, ovsdb.InsertAs(owned(uuidOf(1), "never", "x"))); errors.Is(err, ovsdb.ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that had ended: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := s.Commit(ctx, ovsdb.InsertAs(owned(uuidOf(2), "late", "x")))
		done <- err
	}()
	s.WaitCalls(1)
	cancel()
	if err := <-done; !errors.Is(err, ovsdb.ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that ends: %v", err)
	}
	server.Thaw()
	r.wait("the row of the transaction", func() bool { return len(r.rows[nb.LoadBalancerTable]) == 1 })
	if got := r.balancers(); !slices.Equal(got, []string{"late"}) {
		t.Errorf("rows %q", got)
	}
}

// A connection that ends between the commit and its reply leaves the outcome unknown.
func TestReplyLost(t *testing.T) {
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Northbound})
	var p *ovsdbtest.Proxy
	p = newLiar(t, server.Endpoint(), nil, func(m json.RawMessage) []byte {
		if strings.Contains(string(m), `[{"uuid":["uuid","`+uuidOf(1)) {
			p.Cut()
		}
		return m
	})
	s, r := run(t, nbConfig(p.Endpoint()))
	r.waitSync()
	if _, err := s.Commit(t.Context(), ovsdb.InsertAs(owned(uuidOf(1), "a", "x"))); !errors.Is(err, ovsdb.ErrOutcomeUnknown) {
		t.Errorf("without a reply: %v", err)
	}
	r.wait("the row after the reconnect", func() bool { return r.last.InSync && len(r.rows[nb.LoadBalancerTable]) == 1 })
}

// A reply that makes no sense costs the connection, and leaves the outcome unknown: the server may have
// committed.
func TestReplyThatMakesNoSense(t *testing.T) {
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Northbound})
	for i, nonsense := range []string{`{}`, `[]`, `[null]`, `[{"uuid":["set",[]]}]`, `[{"uuid":7}]`} {
		p := ovsdbtest.NewProxy(t, server.Endpoint())
		p.Watch(func(m *ovsdbtest.Message) ovsdbtest.Verdict {
			var reply struct{ ID json.RawMessage }
			if m.Reply && m.Writes() && json.Unmarshal(m.Raw, &reply) == nil {
				m.Raw = fmt.Appendf(nil, `{"id":%s,"result":%s,"error":null}`, reply.ID, nonsense)
			}
			return ovsdbtest.Pass
		})
		s, r := run(t, nbConfig(p.Endpoint()))
		r.waitSync()
		if _, err := s.Commit(t.Context(), ovsdb.InsertAs(owned(uuidOf(i), fmt.Sprint(i), "x"))); !errors.Is(err, ovsdb.ErrOutcomeUnknown) {
			t.Errorf("%s: %v", nonsense, err)
		}
		waitStatus(t, s, "another connection", func(st ovsdb.Status) bool { return st.Connects == 2 && st.InSync })
		if got := r.balancers(); len(got) != i+1 {
			t.Errorf("rows %q", got)
		}
	}
}

func TestLocks(t *testing.T) {
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Northbound})
	config := nbConfig(server.Endpoint())
	config.Locks = []string{"sluice_a", "sluice_b"}
	first, has := run(t, config)
	has.waitLocks("sluice_a", "sluice_b")
	proxied := ovsdbtest.NewProxy(t, server.Endpoint())
	config.Endpoints = proxied.Endpoint()
	second, waits := run(t, config)
	waits.waitSync()
	insert := func(n int) ovsdb.Operation { return ovsdb.InsertAs(owned(uuidOf(n), fmt.Sprint(n), "x")) }
	commit(t, first, ovsdb.Assert("sluice_a"), insert(1))
	if _, err := second.Commit(t.Context(), ovsdb.Assert("sluice_a"), insert(2)); !errors.Is(err, ovsdb.ErrNotOwner) {
		t.Errorf("without the lock: %v", err)
	}
	if err := second.Steal("sluice_a"); err != nil {
		t.Fatal(err)
	}
	waits.waitLocks("sluice_a")
	has.waitLocks("sluice_b")
	commit(t, second, ovsdb.Assert("sluice_a"), insert(3))
	if _, err := first.Commit(t.Context(), ovsdb.Assert("sluice_a"), insert(4)); !errors.Is(err, ovsdb.ErrNotOwner) {
		t.Errorf("after it was stolen: %v", err)
	}
	// The end of a connection gives its locks on; the next one waits for them again.
	proxied.Cut()
	has.waitLocks("sluice_a", "sluice_b")
	waits.wait("the second session to be back", func() bool { return waits.last.InSync })
	waits.waitLocks()
	if got := has.balancers(); !slices.Equal(got, []string{"1", "3"}) {
		t.Errorf("rows %q", got)
	}
	if err := second.Steal("other"); err == nil {
		t.Error("a lock that was not asked for is stolen")
	}
	config.Locks = []string{"no-name"}
	if _, err := ovsdb.NewSession(config); err == nil {
		t.Error("a lock of a wrong name")
	}
}

func commit(t testing.TB, s *ovsdb.Session, operations ...ovsdb.Operation) []ovsdb.Result {
	t.Helper()
	results, err := s.Commit(t.Context(), operations...)
	if err != nil {
		t.Fatalf("commit: %v", err)
	}
	return results
}

// balancers are the names of the load balancers that the handler has now.
func (r *recorder) balancers() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for row := range maps.Values(r.rows[nb.LoadBalancerTable]) {
		names = append(names, row.(*nb.LoadBalancer).Name)
	}
	slices.Sort(names)
	return names
}

func (r *recorder) waitLocks(names ...string) {
	r.t.Helper()
	r.wait(fmt.Sprintf("the locks %q", names), func() bool { return r.last.Connected && slices.Equal(r.last.Locks, names) })
}
