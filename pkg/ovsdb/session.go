package ovsdb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/ovn-sluice/sluice/pkg/loop"
)

// Session keeps a local copy of part of a database. See the package comment.
type Session struct {
	config    Config
	endpoints []endpoint
	log       *slog.Logger

	// The fields below belong to Run's goroutine.
	content *content
	// acked are the conditions that content follows; ackedGeneration is the
	// generation of the last SetConditions that they answer.
	acked           Conditions
	ackedGeneration uint64
	// lastTxn is the transaction that content is at, valid for acked and
	// monitored; empty when only a full reload can tell.
	lastTxn   string
	monitored map[string][]string
	delivered delivered
	// origin is where these rows are from; behindSince is when, since then, the first server
	// was met that may be behind them.
	origin      origin
	behindSince time.Time
	// unusable has what was said last of endpoints that could not be used since.
	unusable map[string]string

	// changed wakes Run after SetConditions.
	changed loop.Signal

	mu         sync.Mutex
	wanted     Conditions
	checked    map[string]map[Clause]struct{} // the clauses of checkConditions, by table
	generation uint64
	conn       *conn // nil while not connected
	schema     *serverSchema
	status     Status
}

// Status is what a person asks of a session.
type Status struct {
	Database  string
	Connected bool
	// InSync: the handler has returned from a batch with InSync, and no newer
	// SetConditions waits for its answer.
	InSync bool
	// Endpoint is the current server's, as configured.
	Endpoint string
	// Since is when the connection became usable, or was lost.
	Since time.Time
	// Behind is why the server's content may be older than what the session had handed on
	// before: while connected that of the server in use, else that of the last one
	// which was not used for it. Empty if there is no such reason.
	Behind string
	// LastError is why the last connection or attempt ended; nil if there was
	// none.
	LastError error
	// Model is standalone, clustered or relay; empty if the server does not tell.
	Model string
	// Leader: the server leads its cluster; true for a standalone database.
	Leader bool
	// SchemaVersion is the server's.
	SchemaVersion string
	// Rows is how many the content has.
	Rows int
	// Connects counts usable connections; Resumed counts those of them that went
	// on from the last transaction instead of reading everything anew.
	Connects, Resumed int
}

// NewSession checks the configuration. It does no I/O.
func NewSession(config Config) (*Session, error) {
	if err := config.setDefaults(); err != nil {
		return nil, err
	}
	endpoints, err := parseEndpoints(config.Endpoints)
	if err != nil {
		return nil, err
	}
	if !config.InOrder {
		rand.Shuffle(len(endpoints), func(i, j int) {
			endpoints[i], endpoints[j] = endpoints[j], endpoints[i]
		})
	}
	if slices.ContainsFunc(endpoints, func(e endpoint) bool { return e.scheme == "ssl" }) &&
		(config.TLS.Cert == "" || config.TLS.Key == "" || config.TLS.CA == "") {
		return nil, fmt.Errorf("ovsdb session %s: an ssl endpoint needs a certificate, its key and a CA", config.Database.name)
	}
	kept, err := config.Database.keeping(config.Keys)
	if err != nil {
		return nil, err
	}
	s := &Session{
		config:     config,
		endpoints:  endpoints,
		log:        config.Logger.With("database", config.Database.name),
		content:    newContent(kept),
		changed:    loop.NewSignal(),
		unusable:   make(map[string]string),
		generation: 1,
		status:     Status{Database: config.Database.name},
	}
	for _, name := range config.Locks {
		if !lockName.MatchString(name) {
			return nil, fmt.Errorf("ovsdb session %s: lock %q: a name has letters, digits and underscores", config.Database.name, name)
		}
	}
	if err := s.checkTables(); err != nil {
		return nil, err
	}
	if err := s.checkConditions(config.Conditions); err != nil {
		return nil, err
	}
	s.wanted = config.Conditions.normal()
	return s, nil
}

func (s *Session) checkTables() error {
	for name, columns := range s.config.Tables {
		t, ok := s.config.Database.tables[name]
		if !ok {
			return fmt.Errorf("database %s has no table %s", s.config.Database.name, name)
		}
		if columns != nil && len(columns) == 0 {
			return fmt.Errorf("table %s: no column is asked for", name)
		}
		for _, column := range columns {
			if _, ok := t.columns[column]; !ok {
				return fmt.Errorf("table %s has no column %s", name, column)
			}
		}
	}
	return nil
}

// checkConditions refuses what no server could answer. Clauses that were checked the last
// time are not checked again: of hundreds one may be new. Columns must be among the
// monitored ones: the set of those cannot change while a monitor runs.
func (s *Session) checkConditions(conditions Conditions) error {
	s.mu.Lock()
	before := s.checked
	s.mu.Unlock()
	checked := make(map[string]map[Clause]struct{}, len(conditions))
	for name, clauses := range conditions {
		columns, ok := s.config.Tables[name]
		if !ok {
			return fmt.Errorf("condition on table %s, which the session does not follow", name)
		}
		t := s.config.Database.tables[name]
		checked[name] = make(map[Clause]struct{}, len(clauses))
		for _, clause := range clauses {
			if _, was := before[name][clause]; clause.column == "" || was {
				checked[name][clause] = struct{}{}
				continue
			}
			if columns != nil && clause.column != "_uuid" && !slices.Contains(columns, clause.column) {
				return fmt.Errorf("table %s: condition %q on a column that the session does not follow", name, clause)
			}
			if err := t.checkClause(clause); err != nil {
				return fmt.Errorf("table %s: condition %q: %w", name, clause, err)
			}
			checked[name][clause] = struct{}{}
		}
	}
	s.mu.Lock()
	s.checked = checked
	s.mu.Unlock()
	return nil
}

// SetConditions replaces the conditions. It may be called from any goroutine, the
// handler's too, at any time; of several calls in a row only the last one may
// reach the server. A batch with InSync follows once it is answered; conditions
// that mean the same as the last ones change nothing and bring no batch. An error
// is a mistake of the caller and leaves the conditions as they were.
func (s *Session) SetConditions(conditions Conditions) error {
	if err := s.checkConditions(conditions); err != nil {
		return err
	}
	normal := conditions.normal()
	s.mu.Lock()
	if normal.equal(s.wanted) {
		s.mu.Unlock()
		return nil
	}
	s.wanted = normal
	s.generation++
	s.status.InSync = false
	s.mu.Unlock()
	s.changed.Send()
	return nil
}

// Generation counts the SetConditions that changed something.
func (s *Session) Generation() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.generation
}

// Has tells whether the server's schema, as last seen, has the column, with the
// type that the generated struct expects. With an empty column it asks for the
// table. It is false before the first connection.
func (s *Session) Has(table, column string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.schema.has(table, column)
}

// Status tells how the session is.
func (s *Session) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// Run connects, reconnects and calls the handler until ctx ends; then it returns
// nil. It must be called once.
func (s *Session) Run(ctx context.Context) error {
	failures := 0
	for i := 0; ; i++ {
		e := s.endpoints[i%len(s.endpoints)]
		start := time.Now()
		synced, err := s.attempt(ctx, e)
		if ctx.Err() != nil {
			s.disconnected(err)
			return nil
		}
		s.lost(e, err)
		// A connection that worked starts the backoff anew, unless it broke so
		// soon that this would be a busy loop.
		if synced && time.Since(start) > s.config.BackoffMin {
			failures = 0
		}
		failures++
		if failures%len(s.endpoints) != 0 {
			continue
		}
		if !loop.Sleep(ctx, s.backoff(failures/len(s.endpoints))) {
			return nil
		}
	}
}

// backoff doubles with every round through the endpoints, with jitter of half.
func (s *Session) backoff(round int) time.Duration {
	d := s.config.BackoffMin
	for ; round > 1 && d < s.config.BackoffMax; round-- {
		d *= 2
	}
	d = min(d, s.config.BackoffMax)
	return d/2 + rand.N(d/2+1)
}

// lost records and reports the end of a connection or attempt. The content stays.
func (s *Session) lost(e endpoint, err error) {
	why := cause(err)
	err = fmt.Errorf("%s: %w", e.text, err)
	if s.disconnected(err) {
		s.log.Warn("database connection lost", "endpoint", e.text, "error", err)
		s.deliver(nil, false)
		return
	}
	// The same failure over and over is said once.
	if s.unusable[e.text] != why {
		s.unusable[e.text] = why
		s.log.Info("database endpoint not usable", "endpoint", e.text, "error", err)
	}
}

// cause is what stays the same of an error while its cause does: without the
// client's port.
func cause(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Op + ": " + op.Err.Error()
	}
	return err.Error()
}

// disconnected makes the status say so, and tells whether it was connected.
func (s *Session) disconnected(err error) (was bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was = s.status.Connected
	s.conn = nil
	s.status.Connected, s.status.InSync, s.status.Leader = false, false, false
	s.status.Endpoint = ""
	s.status.LastError = err
	if was {
		s.status.Since, s.status.Behind = time.Now(), ""
	}
	return was
}

var errCanceled = errors.New("the server ended the monitor: schema changed, or database removed")
