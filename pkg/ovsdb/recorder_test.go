package ovsdb_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/sb"
)

var southbound = sb.Database()

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a handler that keeps a copy of the rows from the changes alone and
// checks that every change continues that copy.
type recorder struct {
	t testing.TB

	mu      sync.Mutex
	rows    map[string]map[string]ovsdb.Row
	last    ovsdb.Batch
	batches []ovsdb.Batch
	wake    chan struct{}
	// always, if set, says what is wrong with the rows after a batch, or "".
	always func() string
}

func newRecorder(t testing.TB) *recorder {
	return &recorder{t: t, rows: map[string]map[string]ovsdb.Row{}, wake: make(chan struct{}, 1)}
}

func (r *recorder) handle(b ovsdb.Batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range b.Changes {
		r.apply(c)
	}
	r.last = b
	r.batches = append(r.batches, b)
	if r.always != nil {
		if wrong := r.always(); wrong != "" {
			r.t.Errorf("after the batch of %q (InSync %t): %s", b.Endpoint, b.InSync, wrong)
		}
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *recorder) apply(c ovsdb.Change) {
	if r.rows[c.Table] == nil {
		r.rows[c.Table] = map[string]ovsdb.Row{}
	}
	have := r.rows[c.Table][c.UUID]
	if have != c.Old {
		r.t.Errorf("%s %s: the change starts from %+v, the copy has %+v", c.Table, c.UUID, c.Old, have)
	}
	if c.New == nil {
		delete(r.rows[c.Table], c.UUID)
		return
	}
	if c.New.GetUUID() != c.UUID || c.New.OVSDBTable() != c.Table {
		r.t.Errorf("change of %s %s holds row %s %s", c.Table, c.UUID, c.New.OVSDBTable(), c.New.GetUUID())
	}
	r.rows[c.Table][c.UUID] = c.New
}

// wait blocks until the condition holds, which is looked at after every batch.
func (r *recorder) wait(what string, ok func() bool) {
	r.t.Helper()
	deadline := time.After(ovsdbtest.Timeout)
	for {
		r.mu.Lock()
		done := ok()
		r.mu.Unlock()
		if done {
			return
		}
		select {
		case <-r.wake:
		case <-time.After(50 * time.Millisecond):
		case <-deadline:
			r.mu.Lock()
			defer r.mu.Unlock()
			r.t.Fatalf("waited in vain for %s; last batch %+v, %d rows", what, r.last, r.countLocked())
		}
	}
}

func (r *recorder) countLocked() int {
	n := 0
	for _, rows := range r.rows {
		n += len(rows)
	}
	return n
}

func (r *recorder) waitSync() {
	r.t.Helper()
	r.wait("InSync", func() bool { return r.last.InSync })
}

func (r *recorder) waitLost() {
	r.t.Helper()
	r.wait("the loss of the connection", func() bool { return !r.last.Connected && len(r.batches) > 0 })
}

// table is a copy of one table's rows.
func (r *recorder) table(name string) map[string]ovsdb.Row {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.rows[name])
}

// chassisNames of the copy, sorted.
func (r *recorder) chassisNames() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.chassisNamesLocked()
}

func (r *recorder) chassisNamesLocked() []string {
	var names []string
	for _, row := range r.rows[sb.ChassisTable] {
		names = append(names, row.(*sb.Chassis).Name)
	}
	slices.Sort(names)
	return names
}

func (r *recorder) waitChassis(names ...string) {
	r.t.Helper()
	r.wait("chassis", func() bool { return slices.Equal(r.chassisNamesLocked(), names) })
}

// sbConfig follows Chassis and Encap, all rows.
func sbConfig(endpoints string) ovsdb.Config {
	return ovsdb.Config{
		Database:   southbound,
		Endpoints:  endpoints,
		Tables:     ovsdb.Tables{sb.ChassisTable: nil, sb.EncapTable: nil},
		Conditions: ovsdb.Conditions{sb.ChassisTable: {ovsdb.All()}, sb.EncapTable: {ovsdb.All()}},
		BackoffMin: 10 * time.Millisecond,
		BackoffMax: 200 * time.Millisecond,
	}
}

// run starts a session that the test's end stops.
func run(t testing.TB, config ovsdb.Config) (*ovsdb.Session, *recorder) {
	t.Helper()
	r := newRecorder(t)
	config.Handler = r.handle
	s, err := ovsdb.NewSession(config)
	if err != nil {
		t.Fatalf("NewSession: %v", err)
	}
	start(t, s)
	return s, r
}

func start(t testing.TB, s *ovsdb.Session) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func transact(t testing.TB, s *ovsdb.Session, operations ...ovsdb.Operation) []ovsdb.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), ovsdbtest.Timeout)
	defer cancel()
	results, err := s.Transact(ctx, operations...)
	if err != nil {
		t.Fatalf("Transact: %v", err)
	}
	return results
}

// addChassis adds a chassis with one encapsulation and returns its UUID.
func addChassis(t testing.TB, s *ovsdb.Session, name, ip string) string {
	t.Helper()
	results := transact(t, s,
		ovsdb.Insert(&sb.Encap{ChassisName: name, IP: ip, Type: "geneve"}, "encap"),
		ovsdb.Insert(&sb.Chassis{Name: name, Hostname: name + ".example", Encaps: []string{"encap"}}, ""))
	return results[1].UUID
}
