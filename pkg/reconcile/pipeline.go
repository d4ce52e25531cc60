package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/ovn-sluice/sluice/pkg/beat"
	"github.com/ovn-sluice/sluice/pkg/loop"
)

// Stage is a Table of any type, as a Pipeline sees it.
type Stage interface {
	Name() string
	Stats() Stats
	Changes() []Change
	Known() bool
	// Waiting counts the wanted rows that are neither in place nor failed, and one more
	// before the actual side has been read back.
	Waiting() int
	// Waited tells of the rows that have waited for something since before a time, one by one
	// and without a break; not of those that wait with ErrMissing.
	Waited(before time.Time) Wait

	// Busy is since when a call of the driver runs that takes long; zero if none does.
	Busy() time.Time

	// begins begins a pass, and missed tells whether the table has had no whole turn in it: a
	// pass follows the call that runs, for whoever asks may wait for it, and one a table that
	// cannot be read back. root is the table whose driver makes it miss its turn, which may be
	// itself. busy is as Busy. The lock is held for all of these but begins.
	begins()
	missed() bool
	root() Stage
	busy() time.Time
	// pending tells whether rows of the table wait for a turn; coming: those that are wanted.
	pending(coming bool) bool
	refresh(ctx context.Context) (known bool, err error)
	readBack(ctx context.Context) error
	additionPass(ctx context.Context)
	removalCandidates(changed bool) (pass func(ctx context.Context))
	nextRetry() time.Time
	share(p *Pipeline, place int)
	// part: it is a part of a table that is a stage, too.
	part() bool
	relist()
}

// Pipeline runs the tables' passes in order.
type Pipeline struct {
	stages []Stage
	tables []Stage // those that are no parts
	log    *slog.Logger
	dry    bool
	relist time.Duration
	told   func(time.Duration)
	grace  time.Duration
	calls  sync.WaitGroup // of drivers, that run

	mu      sync.Mutex // guards the wanted and actual sides of all tables, and updates
	updates uint64
	kick    loop.Signal

	listErr map[string]error

	passMu sync.Mutex
}

// PipelineOptions tune a pipeline.
type PipelineOptions struct {
	Log *slog.Logger
	// Dry: read and compare, never write.
	Dry bool
	// RelistEvery is how often all tables are read back to find what others
	// changed. 0 means 5 minutes.
	RelistEvery time.Duration
	// Grace is how long a pass waits for one call of a driver, before it goes on without it.
	// 0 means half a second.
	Grace time.Duration
	// Passed, when set, is told how long each pass took.
	Passed func(time.Duration)
}

// NewPipeline orders the tables: the first is added to first and removed from last.
func NewPipeline(opts PipelineOptions, stages ...Stage) *Pipeline {
	if opts.RelistEvery == 0 {
		opts.RelistEvery = 5 * time.Minute
	}
	if opts.Grace == 0 {
		opts.Grace = defaultGrace
	}
	p := &Pipeline{
		grace: opts.Grace, stages: stages, log: opts.Log, dry: opts.Dry, relist: opts.RelistEvery, told: opts.Passed,
		kick: loop.NewSignal(), listErr: map[string]error{},
	}
	for i, s := range stages {
		s.share(p, i)
		if !s.part() {
			p.tables = append(p.tables, s)
		}
	}
	return p
}

// Update changes wanted sides: all that f does to the pipeline's tables is one
// change, which no pass sees half of.
func (p *Pipeline) Update(f func()) {
	p.mu.Lock()
	f()
	p.updates++
	p.mu.Unlock()
	p.Kick()
}

// Waited lists the tables of which rows have waited for long: see Stage.
func (p *Pipeline) Waited(before time.Time) (out []Wait) {
	for _, s := range p.tables {
		if w := s.Waited(before); w.Rows > 0 {
			out = append(out, w)
		}
	}
	return out
}

// View reads the tables with the methods that end in Locked: no change comes in
// between.
func (p *Pipeline) View(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// Kick has a pass run soon.
func (p *Pipeline) Kick() { p.kick.Send() }

// Run makes passes until ctx ends: after every change, when a retry is due, and
// at the relist interval.
func (p *Pipeline) Run(ctx context.Context) error {
	defer p.calls.Wait()
	relist := beat.New(p.relist)
	defer relist.Stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.kick:
		case <-timer.C:
		case <-relist.C:
			p.RelistAll()
		}
		next := p.Pass(ctx)
		timer.Reset(next)
	}
}

// RelistAll has every table read back in the next pass.
func (p *Pipeline) RelistAll() {
	p.Update(func() {
		for _, s := range p.stages {
			s.relist()
		}
	})
}

const idle = time.Hour

// Pass makes one pass and returns the time until the next one is due.
func (p *Pipeline) Pass(ctx context.Context) time.Duration {
	p.passMu.Lock()
	defer p.passMu.Unlock()
	begun := time.Now()
	next := idle
	listed := make([]Stage, 0, len(p.stages))
	for _, s := range p.stages {
		s.begins()
	}
	for _, s := range p.stages {
		known, err := s.refresh(ctx)
		if interrupted(ctx, err) {
			return idle
		}
		if err != nil {
			next = time.Second
		}
		// A table that cannot be read is left alone, and so is one whose driver has not
		// returned; the others go on.
		if known {
			listed = append(listed, s)
		}
	}
	if !p.dry {
		p.apply(ctx, listed)
	}
	for _, s := range listed {
		if t := s.nextRetry(); !t.IsZero() && !p.dry {
			next = min(next, max(time.Until(t), time.Millisecond))
		}
	}
	if p.told != nil {
		p.told(time.Since(begun))
	}
	return next
}

func (p *Pipeline) apply(ctx context.Context, stages []Stage) {
	p.mu.Lock()
	begun := p.updates
	p.mu.Unlock()
	for _, s := range stages {
		s.additionPass(ctx)
	}
	// The candidates of all tables are picked at one moment: a change that comes
	// in between must not remove a route before its announcement is withdrawn.
	passes := make([]func(context.Context), len(stages))
	p.mu.Lock()
	for i, s := range stages {
		passes[i] = s.removalCandidates(p.updates != begun)
	}
	p.mu.Unlock()
	for i := len(passes) - 1; i >= 0; i-- {
		passes[i](ctx)
	}
}

// late are the tables that had no turn, or not the whole of it, and whose rows an addition
// of a table, or a removal, would overtake: additions run from the first table to the last,
// and then removals from the last to the first. The lock is held.
func (p *Pipeline) late(of Stage, place int, removal bool) (late []Stage) {
	for i, s := range p.stages {
		earlier := i < place || s == of
		if s.part() || s == of && !removal || !earlier && !removal || !s.missed() {
			continue
		}
		if s.pending(earlier) {
			late = append(late, s)
		}
	}
	return late
}

func (p *Pipeline) noteList(stage string, err error) {
	p.mu.Lock()
	before := p.listErr[stage]
	p.listErr[stage] = err
	p.mu.Unlock()
	if err != nil && (before == nil || before.Error() != err.Error()) {
		p.log.Error("reading back a table failed", "table", stage, "error", err)
	}
	if err == nil && before != nil {
		p.log.Info("reading back a table works again", "table", stage)
	}
}

// Compare reads every table back and returns the whole difference, in the order
// of the tables. It writes nothing; the next pass will. The difference of a table that
// cannot be read back is left out, and the error says so.
func (p *Pipeline) Compare(ctx context.Context) ([]Change, error) {
	var out []Change
	var errs []error
	for _, s := range p.tables {
		if err := s.readBack(ctx); err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, s.Changes()...)
	}
	return out, errors.Join(errs...)
}

// Stages lists the tables in order.
func (p *Pipeline) Stages() []Stage { return p.tables }

// ListError is the error of the last attempt to read a table back.
func (p *Pipeline) ListError(stage string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listErr[stage]
}
