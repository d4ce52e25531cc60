package northbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
)

var (
	// ErrUnavailable: the database cannot be asked, or has not been read yet. Nothing was written.
	ErrUnavailable = errors.New("the Northbound database is not available")
	// ErrBusy: the rows changed under a transaction each time that it was tried. Nothing was
	// written.
	ErrBusy = errors.New("others keep changing the same rows")
)

// mostTries bounds how often a transaction is computed. Each try that conflicts has another one
// that succeeded, so that many callers at once need as many.
const mostTries = 200

// defaultReadWait is Config.ReadWait that is not set: a cluster has chosen another leader by then, if it
// can.
const defaultReadWait = 5 * time.Second

// A controller has few replicas: it is back soon after its database, and no herd.
const (
	backoffMin = 50 * time.Millisecond
	backoffMax = 500 * time.Millisecond
)

// Lock is the OVSDB lock of the replica that acts on events. Which replica answers API calls does
// not depend on it.
const Lock = "sluice_controller"

// tables are those that the store follows.
func tables() (ovsdb.Tables, ovsdb.Conditions) {
	asked, all := ovsdb.Tables{}, ovsdb.Conditions{}
	for _, name := range []string{
		nb.LoadBalancerTable, nb.LoadBalancerHealthCheckTable, nb.LogicalSwitchTable, nb.LogicalSwitchPortTable,
		nb.LogicalRouterTable, nb.LogicalRouterPortTable, nb.NATTable, nb.DHCPOptionsTable,
	} {
		asked[name], all[name] = nil, []ovsdb.Clause{ovsdb.All()}
	}
	return asked, all
}

// Config is what a Store is told. Endpoints are required.
type Config struct {
	// Endpoints are the servers of the Northbound database, as in ovsdb.Config.
	Endpoints string
	TLS       ovsdb.TLSFiles
	Logger    *slog.Logger
	// Program is named in the comments of transactions; empty: sluice-controller.
	Program string
	// ReadWait is how long Current waits for a database that does not answer. 0 means 5 s.
	ReadWait time.Duration
}

// Store follows the database and writes it.
type Store struct {
	session  *ovsdb.Session
	log      *slog.Logger
	program  string
	readWait time.Duration
	// turn is held by the one transaction that is tried again after a conflict. It guards nothing: of
	// many that are tried again at once, one succeeds each time.
	turn chan struct{}

	mu       sync.Mutex
	snapshot *Snapshot
	inSync   bool
	// read: it was in sync once, so that the snapshot is what the database had.
	read  bool
	leads bool
	// losses counts the connections that ended; lostAt is when it was in sync last, if it is not.
	losses int
	lostAt time.Time
	// waiting is closed at the next change.
	waiting chan struct{}
	stats   Stats
}

// Stats count what became of transactions.
type Stats struct {
	// Commits were committed. Conflicts, Repeats are tries that found rows changed, or whose
	// outcome was not known; each was computed again.
	Commits, Conflicts, Repeats uint64
}

// inactivityProbe ends a connection to a server that hangs sooner than a call ends.
const inactivityProbe = 5 * time.Second

// New checks the configuration. It does no I/O.
func New(config Config) (*Store, error) {
	asked, all := tables()
	return newStore(config, ovsdb.Config{Tables: asked, Conditions: all, LeaderOnly: true, Locks: []string{Lock}})
}

// newStore makes a Store that follows what session names.
func newStore(config Config, session ovsdb.Config) (*Store, error) {
	s := &Store{log: config.Logger, program: cmp.Or(config.Program, "sluice-controller"), readWait: cmp.Or(config.ReadWait, defaultReadWait), snapshot: &Snapshot{},
		waiting: make(chan struct{}), turn: make(chan struct{}, 1)}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	session.Database, session.Endpoints, session.TLS = database, config.Endpoints, config.TLS
	session.Logger, session.Handler, session.InactivityProbe = s.log, s.take, inactivityProbe
	var err error
	session.BackoffMin, session.BackoffMax = backoffMin, backoffMax
	s.session, err = ovsdb.NewSession(session)
	return s, err
}

// Run follows the database until ctx ends.
func (s *Store) Run(ctx context.Context) error {
	err := s.session.Run(ctx)
	s.take(ovsdb.Batch{})
	return err
}

// take is the session's handler.
func (s *Store) take(b ovsdb.Batch) {
	s.mu.Lock()
	next := s.snapshot
	if len(b.Changes) > 0 {
		next = next.with(b.Changes)
	}
	if s.inSync && !b.InSync {
		s.lostAt = time.Now()
	}
	s.snapshot, s.inSync, s.leads = next, b.InSync, slices.Contains(b.Locks, Lock)
	s.read = s.read || b.InSync
	if !b.Connected {
		s.losses++
	}
	close(s.waiting)
	s.waiting = make(chan struct{})
	s.mu.Unlock()
}

// Changed is closed at the next change of the content, of the session, or of who leads.
func (s *Store) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting
}

// Snapshot is what the database had last. While it cannot be reached that may be of before; it is
// ErrUnavailable before it was read once.
func (s *Store) Snapshot() (*Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.read {
		return nil, ErrUnavailable
	}
	return s.snapshot, nil
}

// Current is Barrier, and Snapshot where the database has not answered for Config.ReadWait: who reads
// is told what was there last. A connection that ends and comes back takes nobody back in time.
func (s *Store) Current(ctx context.Context) (*Snapshot, error) {
	snapshot, err := s.Fresh(ctx)
	if errors.Is(err, ErrUnavailable) && ctx.Err() == nil {
		return s.Snapshot()
	}
	return snapshot, err
}

// Fresh is Barrier that waits for a database that does not answer for Config.ReadWait alone.
func (s *Store) Fresh(ctx context.Context) (*Snapshot, error) {
	s.mu.Lock()
	from := time.Now()
	if !s.inSync {
		from = s.lostAt
	}
	s.mu.Unlock()
	wait, cancel := context.WithDeadline(ctx, from.Add(s.readWait))
	defer cancel()
	return s.Barrier(wait)
}

// Leads tells whether this store holds Lock.
func (s *Store) Leads() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leads
}

// Status is the session's.
func (s *Store) Status() ovsdb.Status { return s.session.Status() }

// Stats are the counts since the start.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// synced waits until the database is followed, and returns its content, with the connections that
// had ended before.
func (s *Store) synced(ctx context.Context) (snapshot *Snapshot, losses int, err error) {
	for {
		if ctx.Err() != nil {
			return nil, 0, fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
		}
		s.mu.Lock()
		snapshot, losses = s.snapshot, s.losses
		inSync, changed := s.inSync, s.waiting
		s.mu.Unlock()
		if inSync {
			return snapshot, losses, nil
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// lost waits until take knows of the end of a connection after so many others, or ctx ends.
func (s *Store) lost(ctx context.Context, losses int) {
	for {
		s.mu.Lock()
		known, changed := s.losses > losses, s.waiting
		s.mu.Unlock()
		if known {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// Barrier is a snapshot that has all that was committed before the call, by whomever.
func (s *Store) Barrier(ctx context.Context) (*Snapshot, error) {
	for {
		_, losses, err := s.synced(ctx)
		if err != nil {
			return nil, err
		}
		_, err = s.session.Commit(ctx)
		switch {
		case err == nil:
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.snapshot, nil
		case errors.Is(err, ovsdb.ErrNotConnected):
			s.lost(ctx, losses)
		case errors.Is(err, ovsdb.ErrOutcomeUnknown), ctx.Err() != nil && errors.Is(err, ctx.Err()): // synced says so
		default:
			return nil, err
		}
	}
}

// Commit has what f computes committed, in one transaction of the database. f is called again
// with newer rows after each conflict, and once after a Barrier before an error of its own is
// returned: the rows that it rests on may be old. It must have no effect but on tx, and insert
// under UUIDs that are the same in each call: where the outcome of a try is not known, the next
// one finds by them what that one did.
//
// The error is f's, ErrUnavailable, ErrBusy, ErrOutcomeUnknown of pkg/ovsdb when ctx ends without
// an answer, or what the database refused.
func (s *Store) Commit(ctx context.Context, comment string, f func(*Tx) error) error {
	return s.commit(ctx, comment, nil, f)
}

// CommitLeading is Commit that is refused with ErrNotOwner of pkg/ovsdb by the database unless
// this store holds Lock.
func (s *Store) CommitLeading(ctx context.Context, comment string, f func(*Tx) error) error {
	return s.commit(ctx, comment, []ovsdb.Operation{ovsdb.Assert(Lock)}, f)
}

func (s *Store) commit(ctx context.Context, comment string, first []ovsdb.Operation, f func(*Tx) error) error {
	first = append(first, ovsdb.Comment(s.program+": "+comment))
	again, behind, inTurn := false, true, false
	defer func() {
		if inTurn {
			<-s.turn
		}
	}()
	tried := map[rowKey]bool{}
	for range mostTries {
		snapshot, losses, err := s.synced(ctx)
		if err != nil {
			return unknown(again, err)
		}
		tx := newTx(snapshot)
		tx.Again = again || snapshot.hasOne(tried)
		if err := f(tx); err != nil {
			if !behind {
				return err
			}
			// The answer may be of older rows than the caller has seen elsewhere.
			behind = false
			if _, unreachable := s.Barrier(ctx); unreachable != nil {
				return unknown(again, unreachable)
			}
			continue
		}
		// One that finds nothing to do rests on what it has read, too.
		waits, writes := tx.waits(), tx.writes()
		if len(waits)+len(writes) == 0 {
			return nil
		}
		tx.inserts(tried)
		_, err = s.session.Commit(ctx, slices.Concat(first, waits, writes)...)
		switch {
		case err == nil && len(writes) == 0:
			return nil
		case err == nil:
			s.count(func(n *Stats) { n.Commits++ })
			return nil
		case errors.Is(err, ovsdb.ErrNotConnected):
			s.lost(ctx, losses)
		case errors.Is(err, ovsdb.ErrConflict), errors.Is(err, ovsdb.ErrExists):
			s.count(func(n *Stats) { n.Conflicts++ })
			behind = false
			inTurn = inTurn || s.takeTurn(ctx)
		case errors.Is(err, ovsdb.ErrOutcomeUnknown):
			s.count(func(n *Stats) { n.Repeats++ })
			again, behind = true, true
		case ctx.Err() != nil && errors.Is(err, ctx.Err()): // synced says so
		default:
			return err
		}
	}
	return unknown(again, ErrBusy)
}

// takeTurn waits for the turn to try again. It has none if ctx ends.
func (s *Store) takeTurn(ctx context.Context) bool {
	select {
	case s.turn <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// unknown is the error of a transaction that was sent before without an answer.
func unknown(sent bool, err error) error {
	if sent {
		return fmt.Errorf("%w: %w", ovsdb.ErrOutcomeUnknown, err)
	}
	return err
}

func (s *Store) count(f func(*Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.stats)
}
