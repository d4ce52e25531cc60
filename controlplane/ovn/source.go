package ovn

import (
	"context"
	"fmt"
	"maps"
	"time"

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
	// asks counts how often conditions changed. doubtful: they changed while
	// the session may have been on its way to the loop with a batch from before,
	// whose InSync speaks of the conditions before. Then the session's own
	// status is asked, once the batch has been taken.
	asks     int
	doubtful bool
}

// delivery is a batch and where it came from, or a check of a doubtful source.
// done is closed when it has been taken.
type delivery struct {
	from  *source
	batch ovsdb.Batch
	check bool
	asks  int
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
	src.session = session
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

// ask changes the conditions of the named database, while a batch of by is taken.
func (s *source) ask(name string, c ovsdb.Conditions, by *source) error {
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
	s.asked, s.inSync, s.doubtful = sets, false, by != s
	s.asks++
	return nil
}

// has tells whether a row is asked for by its _uuid.
func (s *source) has(table string, id UUID) bool {
	_, yes := s.asked[table][ovsdb.Equal("_uuid", ovsdb.UUID(id))]
	return yes
}

// took notes what a batch says of being in sync.
func (s *source) took(ctx context.Context, group *errgroup.Group, in chan<- delivery, b ovsdb.Batch) {
	s.inSync, s.grows = b.InSync, s.grows && b.Connected
	if s.inSync && s.doubtful {
		s.checkSoon(ctx, group, in)
		s.inSync = false
	}
}

// confirm asks the session itself, which has returned from the handler by now.
func (s *source) confirm(ctx context.Context, group *errgroup.Group, in chan<- delivery, d delivery) {
	switch {
	case d.asks != s.asks || !s.doubtful:
	case s.session.Status().InSync:
		s.inSync, s.doubtful = true, false
	case s.session.Status().Connected:
		s.checkSoon(ctx, group, in)
	}
}

const checkAfter = 2 * time.Millisecond

func (s *source) checkSoon(ctx context.Context, group *errgroup.Group, in chan<- delivery) {
	d := delivery{from: s, check: true, asks: s.asks}
	group.Go(func() error {
		timer := time.NewTimer(checkAfter)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
			deliver(ctx, in, d)
		}
		return nil
	})
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
