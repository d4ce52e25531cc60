package ovn

import (
	"context"
	"fmt"
	"maps"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

// source is one session and what is known of its being in sync. Only the
// follower's loop touches it.
type source struct {
	setting
	session *ovsdb.Session
	cancel  context.CancelFunc
	asked   map[string]map[ovsdb.Clause]struct{}
	inSync  bool
	// grows: the rows are all that was asked for before, as the server has them; what
	// was asked for since is still to come.
	grows bool
	// takesOver: no batch has come yet, and the rows are those of the session
	// before.
	takesOver bool
	// generation is that of the conditions asked for last. A batch on its way to the loop
	// meanwhile is of an earlier one, and its InSync speaks of the conditions before.
	generation uint64
}

// delivery is a batch and where it came from. done is closed when it has been taken.
type delivery struct {
	from  *source
	batch ovsdb.Batch
	done  chan struct{}
}

// start makes a session and runs it. Its handler returns when the loop has taken
// the batch, so that the session is never ahead of the rows by more than one.
func (f *Follower) start(ctx context.Context, group *errgroup.Group, cfg ovsdb.Config) (*source, error) {
	ctx, cancel := context.WithCancel(ctx)
	src := &source{setting: setting{cfg.Endpoints, cfg.TLS}, cancel: cancel, asked: clauseSets(cfg.Conditions)}
	cfg.Logger, cfg.InactivityProbe = f.log, f.cfg.InactivityProbe
	cfg.Handler = func(b ovsdb.Batch) { deliver(ctx, f.in, delivery{from: src, batch: b}) }
	session, err := ovsdb.NewSession(cfg)
	if err != nil {
		cancel()
		return nil, err
	}
	src.session, src.generation = session, session.Generation()
	group.Go(func() error { return session.Run(ctx) })
	return src, nil
}

func deliver(ctx context.Context, in chan<- delivery, d delivery) {
	d.done = make(chan struct{})
	select {
	case in <- d:
	case <-ctx.Done():
		return
	}
	select {
	case <-d.done:
	case <-ctx.Done():
	}
}

func (s *source) isInSync() bool { return s != nil && s.inSync }

// ask changes the conditions of the named database.
func (s *source) ask(name string, c ovsdb.Conditions) error {
	if s == nil {
		return nil
	}
	sets := clauseSets(c)
	if maps.EqualFunc(sets, s.asked, maps.Equal) {
		return nil
	}
	if err := s.session.SetConditions(c); err != nil {
		return fmt.Errorf("conditions on the %s database: %w", name, err)
	}
	s.grows = s.grows || s.inSync
	s.asked, s.inSync, s.generation = sets, false, s.session.Generation()
	return nil
}

// has tells whether a row is asked for by its _uuid.
func (s *source) has(table string, id UUID) bool {
	_, yes := s.asked[table][ovsdb.Equal("_uuid", ovsdb.UUID(id))]
	return yes
}

// took notes what a batch says of being in sync.
func (s *source) took(b ovsdb.Batch) {
	s.inSync, s.grows = b.InSync && b.Generation == s.generation, s.grows && b.Connected
}

// clauseSets are conditions as sets, without the tables that have none.
func clauseSets(c ovsdb.Conditions) map[string]map[ovsdb.Clause]struct{} {
	out := make(map[string]map[ovsdb.Clause]struct{}, len(c))
	for table, clauses := range c {
		if len(clauses) == 0 {
			continue
		}
		set := make(map[ovsdb.Clause]struct{}, len(clauses))
		for _, clause := range clauses {
			set[clause] = struct{}{}
		}
		out[table] = set
	}
	return out
}
