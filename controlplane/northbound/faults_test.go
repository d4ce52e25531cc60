package northbound_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

// through is a store behind a proxy.
func through(t *testing.T, server *ovsdbtest.Server) (*northbound.Store, *ovsdbtest.Proxy) {
	t.Helper()
	p := ovsdbtest.NewProxy(t, server.Endpoint())
	return open(t, p.Endpoint()), p
}

// once gives the first message that is such a one a verdict.
func once(v ovsdbtest.Verdict, such func(*ovsdbtest.Message) bool) func(*ovsdbtest.Message) ovsdbtest.Verdict {
	var done atomic.Bool
	return func(m *ovsdbtest.Message) ovsdbtest.Verdict {
		if such(m) && done.CompareAndSwap(false, true) {
			return v
		}
		return ovsdbtest.Pass
	}
}

// sameAsServer compares what a store has with what a new one reads.
func sameAsServer(t *testing.T, s *northbound.Store, server *ovsdbtest.Server) {
	t.Helper()
	have, want := barrier(t, s), barrier(t, open(t, server.Endpoint()))
	compare := func(table string, a, b map[string]ovsdb.Row) {
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s: the store has %v\nthe database %v", table, a, b)
		}
	}
	compare(nb.LoadBalancerTable, rowsOf[*nb.LoadBalancer](have), rowsOf[*nb.LoadBalancer](want))
	compare(nb.LogicalSwitchTable, rowsOf[*nb.LogicalSwitch](have), rowsOf[*nb.LogicalSwitch](want))
}

func rowsOf[R ovsdb.Row](s *northbound.Snapshot) map[string]ovsdb.Row {
	out := map[string]ovsdb.Row{}
	for row := range northbound.All[R](s) {
		out[row.GetUUID()] = row
	}
	return out
}

// The connection ends at each place of a transaction's way. It is done once, and the function is told
// when it may have been done before.
func TestConnectionEndsInATransaction(t *testing.T) {
	isRequest := func(m *ovsdbtest.Message) bool { return m.ToServer && m.Writes() }
	isReply := func(m *ovsdbtest.Message) bool { return m.Reply && m.Writes() }
	isUpdate := func(m *ovsdbtest.Message) bool {
		return m.Method == "update3" && strings.Contains(string(m.Params), uuidOf(2))
	}
	faults := []struct {
		name    string
		verdict ovsdbtest.Verdict
		such    func(*ovsdbtest.Message) bool
		// done: the server has committed the first try.
		done bool
	}{
		{"the request is lost", ovsdbtest.Lose, isRequest, false},
		{"half of the request arrives", ovsdbtest.Tear, isRequest, false},
		{"the update is lost", ovsdbtest.Lose, isUpdate, true},
		{"half of the update arrives", ovsdbtest.Tear, isUpdate, true},
		{"the reply is lost", ovsdbtest.Lose, isReply, true},
		{"half of the reply arrives", ovsdbtest.Tear, isReply, true},
	}
	calls := []struct {
		name string
		// f is the change of a load balancer that is there or, if it creates one, not. found tells whether it
		// is done already.
		f     func(tx *northbound.Tx) (found bool)
		after string
	}{
		{"create", func(tx *northbound.Tx) bool {
			if _, found := northbound.Get[*nb.LoadBalancer](tx, uuidOf(2)); found {
				return true
			}
			tx.Insert(&nb.LoadBalancer{UUID: uuidOf(2), Name: "new"})
			ls, _ := northbound.One(tx, northbound.SwitchByName, "n1", "load_balancer")
			ls.LoadBalancer = append(ls.LoadBalancer, uuidOf(2))
			tx.Update(ls, "load_balancer")
			return false
		}, "new"},
		{"update", func(tx *northbound.Tx) bool {
			lb, _ := northbound.Get[*nb.LoadBalancer](tx, uuidOf(2), "name")
			found := lb.Name == "changed"
			lb.Name = "changed"
			tx.Update(lb, "name")
			return found
		}, "changed"},
		{"delete", func(tx *northbound.Tx) bool {
			lb, there := northbound.Get[*nb.LoadBalancer](tx, uuidOf(2))
			if there {
				tx.Delete(lb)
			}
			return !there
		}, ""},
	}
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Northbound})
	s, p := through(t, server)
	commit(t, s, func(tx *northbound.Tx) error { tx.Insert(&nb.LogicalSwitch{UUID: uuidOf(1), Name: "n1"}); return nil })
	for _, fault := range faults {
		for _, call := range calls {
			t.Run(fault.name+"/"+call.name, func(t *testing.T) {
				commits := s.Stats().Commits
				p.Watch(once(fault.verdict, fault.such))
				n := 0
				found := false
				commit(t, s, func(tx *northbound.Tx) error {
					n++
					found = call.f(tx)
					if tx.Again != (n > 1) {
						t.Errorf("call %d is told %t", n, tx.Again)
					}
					return nil
				})
				p.Watch(nil)
				if n < 2 || found != fault.done {
					t.Errorf("%d calls, the last one found it done: %t", n, found)
				}
				want := []string{call.after}
				if call.after == "" {
					want = nil
				}
				if got := names(barrier(t, s)); !slices.Equal(got, want) {
					t.Errorf("load balancers %q, want %q", got, want)
				}
				if made := s.Stats().Commits - commits; made != map[bool]uint64{false: 1, true: 0}[fault.done] {
					t.Errorf("%d transactions were committed after the fault", made)
				}
				sameAsServer(t, s, server)
			})
		}
	}
}

// A transaction that writes nothing is guarded by what it has read, like one that writes.
func TestNothingToDoIsGuarded(t *testing.T) {
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Northbound})
	s := open(t, server.Endpoint())
	late, p := through(t, server)
	name := func(value string) func(tx *northbound.Tx) error {
		return func(tx *northbound.Tx) error {
			lb, ok := northbound.Get[*nb.LoadBalancer](tx, uuidOf(1), "name")
			if !ok {
				return errors.New("it is gone")
			}
			lb.Name = value
			tx.Update(lb, "name")
			return nil
		}
	}
	commit(t, s, func(tx *northbound.Tx) error { tx.Insert(&nb.LoadBalancer{UUID: uuidOf(1), Name: "old"}); return nil })
	barrier(t, late)
	// The late one hears of the next change when it has asked for its own.
	release := make(chan struct{})
	var asked sync.Once
	p.Watch(func(m *ovsdbtest.Message) ovsdbtest.Verdict {
		switch {
		case m.ToServer && m.Method == "transact":
			asked.Do(func() { close(release) })
		case m.Method == "update3":
			<-release
		}
		return ovsdbtest.Pass
	})
	commit(t, s, name("new"))
	commit(t, late, name("old"))
	p.Watch(nil)
	asked.Do(func() { close(release) })
	if got := names(barrier(t, s)); !slices.Equal(got, []string{"old"}) {
		t.Errorf("the last one who set the name set it to old; it is %q", got)
	}
}

// Who reads while a connection is away for a moment reads what others have committed meanwhile; a
// database that stays away is read as it was.
func TestCurrent(t *testing.T) {
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Northbound})
	other, p := open(t, server.Endpoint()), ovsdbtest.NewProxy(t, server.Endpoint())
	s := openConfig(t, northbound.Config{Endpoints: p.Endpoint(), ReadWait: ovsdbtest.Timeout})
	hasty := openConfig(t, northbound.Config{Endpoints: p.Endpoint(), ReadWait: time.Millisecond})
	p.Watch(func(*ovsdbtest.Message) ovsdbtest.Verdict { return ovsdbtest.Lose })
	p.Cut()
	until(t, "the end of the connections", func() bool { return !s.Status().InSync && !hasty.Status().InSync })
	commit(t, other, func(tx *northbound.Tx) error { tx.Insert(&nb.LoadBalancer{UUID: uuidOf(1), Name: "a"}); return nil })
	if snapshot, err := hasty.Current(deadline(t)); err != nil || len(names(snapshot)) != 0 {
		t.Errorf("without the database: %v", err)
	}
	read := make(chan []string)
	go func() {
		defer close(read)
		if snapshot, err := s.Current(deadline(t)); err != nil {
			t.Error(err)
		} else {
			read <- names(snapshot)
		}
	}()
	p.Watch(nil)
	if got := <-read; !slices.Equal(got, []string{"a"}) {
		t.Errorf("it reads %q", got)
	}
	// While the server hangs, Current returns what the store read last.
	server.Freeze()
	defer server.Thaw()
	if snapshot, err := hasty.Current(deadline(t)); err != nil {
		t.Errorf("with a database that hangs: %v %v", snapshot, err)
	}
}

// A server of a cluster that loses its lead tries a transaction again which its successor has
// committed, and answers with the conflict of the second try.
func TestConflictWithItself(t *testing.T) {
	for name, refusal := range map[string]string{
		"a wait":   `{"error":"timed out","details":"\"wait\" timed out"}`,
		"its UUID": `{"error":"duplicate uuid","details":"it exists"}`,
	} {
		t.Run(name, func(t *testing.T) {
			server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Northbound})
			s, p := through(t, server)
			var done atomic.Bool
			p.Watch(func(m *ovsdbtest.Message) ovsdbtest.Verdict {
				if !m.Reply || !m.Writes() || !done.CompareAndSwap(false, true) {
					return ovsdbtest.Pass
				}
				results := make([]string, len(m.Operations()))
				for i, o := range m.Operations() {
					results[i] = "{}"
					if o.Op == map[string]string{"a wait": "wait", "its UUID": "insert"}[name] {
						results = append(results[:i], refusal)
						break
					}
				}
				var reply struct{ ID json.RawMessage }
				if err := json.Unmarshal(m.Raw, &reply); err != nil {
					t.Error(err)
				}
				m.Raw = fmt.Appendf(nil, `{"id":%s,"result":[%s],"error":null}`, reply.ID, strings.Join(results, ","))
				return ovsdbtest.Pass
			})
			calls := 0
			commit(t, s, func(tx *northbound.Tx) error {
				calls++
				if tx.Again {
					if _, found := northbound.Get[*nb.LoadBalancer](tx, uuidOf(1)); found {
						return nil
					}
				}
				if len(northbound.Find(tx, northbound.LoadBalancerByName, "unique")) > 0 {
					return errors.New("the name is taken")
				}
				tx.Insert(&nb.LoadBalancer{UUID: uuidOf(1), Name: "unique"})
				return nil
			})
			if calls != 2 {
				t.Errorf("%d calls", calls)
			}
		})
	}
}

// A connection that ends costs a transaction one try, not as many as there are until the store knows.
func TestTriesOfALostConnection(t *testing.T) {
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Northbound})
	s, p := through(t, server)
	most := 0
	for i := range 8 {
		calls := 0
		commit(t, s, func(tx *northbound.Tx) error {
			if calls++; calls == 1 {
				p.Cut()
			}
			tx.Insert(&nb.LoadBalancer{UUID: uuidOf(i), Name: "lb"})
			return nil
		})
		most = max(most, calls)
	}
	t.Logf("up to %d calls", most)
	if most > 4 {
		t.Errorf("the function was called %d times for one lost connection", most)
	}
}

// A server that does not answer is not available: nothing that a caller could take for an answer
// of the database comes back.
func TestServerHangs(t *testing.T) {
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Northbound})
	s := open(t, server.Endpoint())
	server.Freeze()
	defer server.Thaw()
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.Barrier(short); !errors.Is(err, northbound.ErrUnavailable) || errors.Is(err, ovsdb.ErrOutcomeUnknown) {
		t.Errorf("a barrier: %v", err)
	}
	insert := func(tx *northbound.Tx) error { tx.Insert(&nb.LoadBalancer{UUID: uuidOf(1), Name: "a"}); return nil }
	if err := s.Commit(short, "test", insert); !errors.Is(err, northbound.ErrUnavailable) || errors.Is(err, ovsdb.ErrOutcomeUnknown) {
		t.Errorf("a write after its time: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.Commit(ctx, "test", insert); !errors.Is(err, ovsdb.ErrOutcomeUnknown) {
		t.Errorf("a write without an answer: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := s.Commit(ctx, "test", func(*northbound.Tx) error { return errors.New("there is none") })
	if !errors.Is(err, northbound.ErrUnavailable) {
		t.Errorf("an error of old rows: %v", err)
	}
}

// A transaction that was sent, and whose time ends before its repetition, has an unknown outcome.
func TestTimeEndsAfterALostReply(t *testing.T) {
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Northbound})
	s, p := through(t, server)
	p.Watch(once(ovsdbtest.Lose, func(m *ovsdbtest.Message) bool { return m.Reply && m.Writes() }))
	ctx, cancel := context.WithCancel(t.Context())
	err := s.Commit(ctx, "test", func(tx *northbound.Tx) error {
		if tx.Again {
			cancel()
		}
		tx.Insert(&nb.LoadBalancer{UUID: uuidOf(1), Name: "a"})
		tx.Insert(&nb.LoadBalancer{UUID: uuidOf(2), Name: fmt.Sprint(tx.Again)})
		return nil
	})
	if !errors.Is(err, ovsdb.ErrOutcomeUnknown) {
		t.Errorf("the outcome is %v", err)
	}
	if got := names(barrier(t, s)); !slices.Equal(got, []string{"a", "false"}) {
		t.Errorf("rows %q", got)
	}
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for ctx := deadline(t); !ok(); time.Sleep(5 * time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
