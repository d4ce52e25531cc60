package ovn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/pkg/beat"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

// Config is what a Follower is told.
type Config struct {
	// VSwitch is the endpoint of the local Open vSwitch database.
	VSwitch string
	// VSwitchHandler, when set, gets each batch of that database before Handle or Local knows of
	// it, from another goroutine than theirs, with the columns of VSwitchTables among what is read.
	// Of Interface.external_ids only iface-id is. It must not wait.
	VSwitchHandler func(ovsdb.Batch)
	VSwitchTables  ovsdb.Tables
	// SystemID replaces Open_vSwitch.external_ids:system-id when not empty.
	SystemID string
	// Southbound replaces Open_vSwitch.external_ids:ovn-remote when not empty.
	Southbound string
	// Northbound is the endpoint list of the NB session, which may be read-only; empty: none.
	Northbound string
	// NorthboundPatience is how long after the start the Northbound database is waited for
	// while it does not answer. From then on what is in Memory counts, and Rows.ExpectsNB is
	// false: the rest is unknown, until the database answers. 0: for ever.
	NorthboundPatience time.Duration
	// NorthboundNeeded: Rows.ExpectsNB stays true all the same.
	NorthboundNeeded bool
	// Memory is the file of what the Northbound database said last; empty: there is none.
	Memory string
	// TLS is for ssl endpoints. Empty: the files of the vswitch database's SSL
	// table.
	TLS ovsdb.TLSFiles
	// InactivityProbe is ovsdb.Config's, for all sessions.
	InactivityProbe time.Duration
	Needs           Needs
	// Host, when set, tells the node's own addresses, all of them each time. There
	// is no event before the first.
	Host <-chan HostAddresses
	// Handle is called from one goroutine, in order, until Run returns.
	Handle func(Event)
	// Local, when set, is called as Handle is, before the first Event and as long as
	// there is none, when the vswitch database is in sync and names the node: with rows
	// that are complete as far as that database goes. The way to the Southbound
	// database may depend on what it is told.
	Local  func(*Rows)
	Logger *slog.Logger
}

// balancesBySouthbound tells whether load balancers of switches are read in Southbound.
func (c Config) balancesBySouthbound() bool {
	return c.Northbound == "" && c.Needs.VMs && c.Needs.Clients
}

// InSync says of each database whether the rows are all that is needed of it and
// as the server has them.
type InSync struct {
	SB, VSwitch bool
	// SBGrows: Southbound was in sync, and then rows were asked for besides, which are
	// still to come. Those that are there are as the server has them.
	SBGrows bool
	// NB is true as well where no Northbound session is configured: then no
	// row of it is needed.
	NB bool
	// Recalled: Northbound has not answered since the start, and its rows are those of
	// Config.Memory.
	Recalled bool
}

// Remembered counts the rows that are recalled as in sync.
func (s InSync) Remembered() InSync {
	s.NB = s.NB || s.Recalled
	return s
}

// All tells whether every database is in sync.
func (s InSync) All() bool { return s.SB && s.VSwitch && s.NB }

// Event is one step of what is known. The first one comes when Southbound and
// the vswitch database are in sync for the first time, with Dirty.All.
type Event struct {
	// Rows are valid until the handler returns.
	Rows   *Rows
	Dirty  Dirty
	InSync InSync
}

// Follower keeps Rows up to date. See the package comment.
type Follower struct {
	cfg Config
	log *slog.Logger
	in  chan delivery
	// local are batches of the vswitch database that wait for the loop.
	local batches
	// again: the rows are to be told again for metadata.
	again loop.Signal

	// mu guards what follows; Run's loop holds it while it changes rows and
	// while the handler runs.
	mu   sync.Mutex
	rows *Rows
	// loading takes the rows of a new Southbound server until they are in sync,
	// when it takes the place of rows. It is rows itself when nothing loads.
	loading   *Rows
	published bool
	dirty     Dirty
	told      InSync
	// vswitch never changes. sb and nb are nil while there is none.
	vswitch, sb, nb *source
	// nbSeen: the Northbound database has been in sync once; nbLate: patience
	// with it has ended before.
	nbSeen, nbLate bool
	// hostKnown: Config.Host has told once, or is not set.
	hostKnown bool
	publisher *publisher
	memory    *memory
	// What is wrong with following them.
	sbTrouble, nbTrouble trouble
}

// NewFollower checks the configuration. It does no I/O.
func NewFollower(cfg Config) (*Follower, error) {
	if cfg.VSwitch == "" || cfg.Handle == nil {
		return nil, errors.New("follow OVN: the vswitch database's endpoint and a handler are required")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	rows := NewRows()
	rows.named = cfg.SystemID
	rows.ExpectNB(cfg.Northbound != "")
	rows.Expose(cfg.Needs.Exposure)
	rows.FollowVMs(cfg.Needs.VMs)
	rows.FollowACLs(cfg.Needs.ACLs)
	rows.FollowClients(cfg.Needs.Clients)
	rows.BalanceBySouthbound(cfg.balancesBySouthbound())
	f := &Follower{
		cfg: cfg, log: cfg.Logger, in: make(chan delivery), local: newBatches(), again: loop.NewSignal(), rows: rows, loading: rows,
		publisher: newPublisher(), hostKnown: cfg.Host == nil, memory: newMemory(cfg),
	}
	var err error
	if f.vswitch, err = f.newLocal(); err != nil {
		return nil, fmt.Errorf("follow OVN: vswitch database: %w", err)
	}
	return f, nil
}

// Transact sends a transaction to the local Open vSwitch database: see ovsdb.Session.
func (f *Follower) Transact(ctx context.Context, operations ...ovsdb.Operation) ([]ovsdb.Result, error) {
	return f.vswitch.session.Transact(ctx, operations...)
}

// Run follows until ctx ends; then it returns nil. It must be called once.
func (f *Follower) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return f.vswitch.session.Run(ctx) })
	group.Go(func() error { return f.publisher.run(ctx) })
	group.Go(func() error { return f.memory.writer(ctx, f.log) })
	group.Go(func() error {
		patience, remember := time.NewTimer(f.cfg.NorthboundPatience), beat.New(memoryTick)
		defer patience.Stop()
		defer remember.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-patience.C:
				f.mu.Lock()
				f.waitedForNB()
				f.mu.Unlock()
			case <-remember.C:
				f.mu.Lock()
				f.remember(memoryRest)
				f.mu.Unlock()
			case host := <-f.cfg.Host:
				f.mu.Lock()
				f.takeHost(host)
				f.mu.Unlock()
			case <-f.again:
				f.mu.Lock()
				f.dirty.VMs = true
				f.publish()
				f.mu.Unlock()
			case <-f.local.ready:
				for _, b := range f.local.take() {
					f.mu.Lock()
					f.take(ctx, group, delivery{from: f.vswitch, batch: b})
					f.mu.Unlock()
				}
			case d := <-f.in:
				f.mu.Lock()
				f.take(ctx, group, d)
				f.mu.Unlock()
				close(d.done)
			}
		}
	})
	err := group.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lastWords()
	return err
}

// Again has an event with Dirty.VMs, whose rows may be as they were: what is found
// on the node beside them has changed.
func (f *Follower) Again() { f.again.Send() }

// take brings one delivery in and hands out the event.
func (f *Follower) take(ctx context.Context, group *errgroup.Group, d delivery) {
	switch d.from {
	case f.vswitch, f.sb, f.nb:
	default:
		return // the last words of a session that was replaced
	}
	nbWasInSync, gone := f.nb.isInSync(), false
	switch d.from {
	case f.vswitch:
		f.apply(f.localChanges(d.batch), f.rows, f.loading)
		f.configure(ctx, group)
	case f.sb:
		f.apply(changes(d.batch), f.loading)
		f.publisher.take(f.sb.session, d.batch)
	default:
		list := f.nbChanges(d.batch)
		gone = slices.ContainsFunc(list, func(c Change) bool { return c.Table == TableLoadBalancer && c.New == nil })
		f.apply(list, f.rows, f.loading)
		f.memory.told(list)
	}
	d.from.took(d.batch)
	if f.loading != f.rows || f.dirty.relations || f.dirty.All {
		f.discover()
	}
	f.loaded(d.from)
	if !f.nbSeen && f.nb.isInSync() {
		f.nbSeen = true
		if f.nbLate {
			f.expectNB(true)
		}
	}
	if f.nb.isInSync() {
		if gone := f.memory.inSync(); len(gone) > 0 {
			f.apply(gone, f.rows, f.loading)
			f.discover()
		}
	}
	if f.nb.isInSync() && (!nbWasInSync || gone) {
		f.apply(f.rows.dangling(f.nb.has), f.rows, f.loading)
	}
	f.publish()
}

// waitedForNB has what is remembered of the Northbound database count, when it has not
// answered since the start, and stops to expect what it would tell besides.
func (f *Follower) waitedForNB() {
	if f.cfg.Northbound == "" || f.cfg.NorthboundPatience == 0 || f.nbSeen {
		return
	}
	f.log.Warn("the Northbound database has not answered; what is not saved of it is unknown",
		"endpoint", f.cfg.Northbound, "waited", f.cfg.NorthboundPatience)
	f.recall()
	f.discover()
	if !f.cfg.NorthboundNeeded {
		f.nbLate = true
		f.expectNB(false)
	}
	f.publish()
}

func (f *Follower) expectNB(yes bool) {
	f.rows.ExpectNB(yes)
	f.loading.ExpectNB(yes)
	f.dirty.All = true
}

// nbChanges are a batch's. The first one of a session that took another's place
// says what there is: rows that it does not have are gone.
func (f *Follower) nbChanges(b ovsdb.Batch) []Change {
	list := changes(b)
	if f.nb.takesOver && b.Connected {
		f.nb.takesOver = false
		list = append(list, f.rows.goneNB(list)...)
	}
	return list
}

// apply brings changes into the stores, each once; only what the published rows
// see is dirty.
func (f *Follower) apply(list []Change, stores ...*Rows) {
	for i, rows := range stores {
		if i > 0 && rows == stores[0] {
			break
		}
		if d := rows.Apply(list); rows == f.rows {
			f.dirty.join(d)
		}
	}
}

// discover asks for the rows that are needed now.
// A database of which other rows are asked for than before is not in sync until
// they have come.
func (f *Follower) discover() {
	w := f.wanted()
	if w.SB == nil {
		return // without a system-id nothing says what is needed: what is there stays
	}
	f.note(&f.sbTrouble.conditionsErr, f.sb.ask("Southbound", w.SB))
	f.note(&f.nbTrouble.conditionsErr, f.nb.ask("Northbound", w.NB))
}

// wanted is what the rows that load need, and of the Northbound database what the
// published rows need until then.
func (f *Follower) wanted() Wanted {
	w := Discover(f.loading, f.cfg.Needs)
	if f.loading != f.rows && w.SB != nil {
		if w.NB == nil {
			w.NB = ovsdb.Conditions{}
		}
		for table, clauses := range Discover(f.rows, f.cfg.Needs).NB {
			w.NB[table] = append(w.NB[table], clauses...)
		}
	}
	return w
}

// loaded puts rows that are complete, while a batch of by is taken, in the place
// of the published ones: the first time, and after the Southbound server was
// replaced.
func (f *Follower) loaded(by *source) {
	if f.loading == f.rows && f.published || !f.hostKnown || !f.sb.isInSync() || !f.vswitch.isInSync() || f.loading.SystemID() == "" {
		return
	}
	replaced := f.loading != f.rows
	f.rows, f.published, f.dirty.All = f.loading, true, true
	if replaced {
		f.discover()
	}
}

// publish hands out what is known. While another Southbound server's rows load,
// that is what the one before had, and the database is not in sync.
func (f *Follower) publish() {
	if !f.published {
		if f.cfg.Local != nil && f.vswitch.isInSync() && f.rows.SystemID() != "" {
			f.cfg.Local(f.rows)
		}
		return
	}
	dirty, now := f.dirty, f.inSync()
	if len(dirty.Routers) == 0 && !dirty.All && !dirty.Exposure && !dirty.VMs && len(dirty.Switches) == 0 && !dirty.relations && now == f.told {
		return
	}
	if dirty.Routers == nil {
		dirty.Routers, dirty.Switches = map[UUID]struct{}{}, map[UUID]struct{}{}
	}
	f.dirty, f.told = Dirty{}, now
	f.cfg.Handle(Event{Rows: f.rows, Dirty: dirty, InSync: now})
}

func (f *Follower) inSync() InSync {
	sb := f.loading == f.rows && f.rows.SystemID() != ""
	return InSync{
		SB: sb && f.sb.isInSync(), SBGrows: sb && !f.sb.isInSync() && f.sb != nil && f.sb.grows, VSwitch: f.vswitch.isInSync(),
		NB: f.cfg.Northbound == "" || f.nb.isInSync(), Recalled: !f.memory.until.IsZero(),
	}
}
