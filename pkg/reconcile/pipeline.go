package reconcile

import (
	"context"
	"log/slog"
	"sync"
	"time"
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

	refresh(ctx context.Context) error
	additionPass(ctx context.Context)
	removalCandidates(changed bool) (pass func(ctx context.Context))
	nextRetry() time.Time
	share(p *Pipeline)
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

	mu      sync.Mutex // guards the wanted and actual sides of all tables, and updates
	updates uint64
	kick    chan struct{}

	passMu  sync.Mutex
	listErr map[string]error
}

// PipelineOptions tune a pipeline.
type PipelineOptions struct {
	Log *slog.Logger
	// Dry: read and compare, never write.
	Dry bool
	// RelistEvery is how often all tables are read back to find what others
	// changed. 0 means 5 minutes.
	RelistEvery time.Duration
	// Passed, when set, is told how long each pass took.
	Passed func(time.Duration)
}

// NewPipeline orders the tables: the first is added to first and removed from last.
func NewPipeline(opts PipelineOptions, stages ...Stage) *Pipeline {
	if opts.RelistEvery == 0 {
		opts.RelistEvery = 5 * time.Minute
	}
	p := &Pipeline{
		stages: stages, log: opts.Log, dry: opts.Dry, relist: opts.RelistEvery, told: opts.Passed,
		kick: make(chan struct{}, 1), listErr: map[string]error{},
	}
	for _, s := range stages {
		s.share(p)
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

// View reads the tables with the methods that end in Locked: no change comes in
// between.
func (p *Pipeline) View(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// Kick has a pass run soon.
func (p *Pipeline) Kick() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// Run makes passes until ctx ends: after every change, when a retry is due, and
// at the relist interval.
func (p *Pipeline) Run(ctx context.Context) error {
	relist := time.NewTicker(p.relist)
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
		err := s.refresh(ctx)
		if interrupted(ctx, err) {
			return idle
		}
		p.noteList(s.Name(), err)
		if err != nil {
			// A table that cannot be read is left alone; the others go on.
			next = time.Second
			continue
		}
		listed = append(listed, s)
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

func (p *Pipeline) noteList(stage string, err error) {
	before := p.listErr[stage]
	if err != nil && (before == nil || before.Error() != err.Error()) {
		p.log.Error("reading back a table failed", "table", stage, "error", err)
	}
	if err == nil && before != nil {
		p.log.Info("reading back a table works again", "table", stage)
	}
	p.mu.Lock()
	p.listErr[stage] = err
	p.mu.Unlock()
}

// Compare reads every table back and returns the whole difference, in the order
// of the tables. It writes nothing; the next pass will.
func (p *Pipeline) Compare(ctx context.Context) ([]Change, error) {
	p.passMu.Lock()
	defer p.passMu.Unlock()
	var out []Change
	for _, s := range p.tables {
		p.mu.Lock()
		s.relist()
		p.mu.Unlock()
		if err := s.refresh(ctx); err != nil {
			return out, err
		}
		out = append(out, s.Changes()...)
	}
	return out, nil
}

// Stages lists the tables in order.
func (p *Pipeline) Stages() []Stage { return p.tables }

// ListError is the error of the last attempt to read a table back.
func (p *Pipeline) ListError(stage string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listErr[stage]
}
