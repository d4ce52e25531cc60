// Package translation turns events of OVN into steps of wanted tables, and hands them on.
//
// It is where a whole event is taken, one at a time: Take is the order of make-before-break.
// Locks are taken in this order: the follower's mutex, Translation.turn, Translation.mu, one
// consumer's mutex, a pipeline, and last those of single facts. Nobody asks for ovn.Follower.View
// with one of them held.
package translation

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/evpn"
	"github.com/ovn-sluice/sluice/controlplane/exposure"
	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/controlplane/vrfindex"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// Step is an event of OVN and what it changes for a gateway.
type Step struct {
	ovn.Event
	// Number is the event's: the log has it at the level debug on each of its stages.
	Number uint64
	Diff   wanted.Difference
	// Siblings are the VTEPs of the cloud's other nodes, as ovn.Rows.Siblings tells.
	Siblings []netip.Addr
	Arrived  time.Time
}

// Gateway has tables that follow what OVN asks for. All is called in a turn.
type Gateway interface {
	// Begin takes all of it, once, before the first step.
	Begin(all wanted.Set, siblings []netip.Addr)
	// Step takes a change, before anybody is told what came into sync with it.
	Step(Step)
	// Synced is called when that was told: rows may be held for it.
	Synced()
	// ChangePaths takes a change that facts of the node have made.
	ChangePaths(wanted.Difference)
	// IndicesKept is called when indices of VRFs are on disk.
	IndicesKept()
}

// Consumer takes each event after the gateway. It is called in a turn.
type Consumer interface{ Take(ovn.Event) }

// Config is what the translators are told of the configuration.
type Config struct {
	EVPN     evpn.Config
	Exposure exposure.Config
	// Retain: indices of VRFs that went while no sluiced ran are to be freed.
	Retain bool
}

// Translation owns the translators of what a gateway does, and knows what is in sync. It is safe
// for concurrent use.
type Translation struct {
	indices *vrfindex.Store
	reg     *status.Registry
	log     *slog.Logger

	turn      sync.Mutex // held while a whole event is taken; guards the next ones
	gateway   Gateway    // nil while none is at work
	consumers []Consumer
	readings  *loadbalancer.Book
	siblings  []netip.Addr
	events    uint64 // that were taken
	retain    bool
	// complaints are the translators', as last reported.
	complaints, exposureComplaints uint64

	mu       sync.Mutex // guards the translators
	tenants  *evpn.Translator
	exposure *exposure.Translator

	// inSync is nil before the first event.
	inSync atomic.Pointer[ovn.InSync]
}

// Indices is where the indices of VRFs come from: Open of package vrfindex, or Peek.
type Indices func(path string, seed map[intent.VNI]uint16) (*vrfindex.Store, error)

// OpenIndices opens those of a state directory, and reports what of them cannot be read. seed is
// what the pinned maps show.
func OpenIndices(open Indices, stateDir string, seed map[intent.VNI]uint16, reg *status.Registry) (*vrfindex.Store, error) {
	path := stateDir + "/vrf-indices.json"
	indices, err := open(path, seed)
	if err != nil {
		return nil, fmt.Errorf("VRF indices in %s: %w", path, err)
	}
	if err := indices.Damaged(); err != nil {
		reg.Reporter("state").Set(status.Object{Kind: "node", Key: "vrf-indices", State: status.Warning, Reason: reason.NotRead, Error: err.Error()})
	}
	return indices, nil
}

// New makes the translators. It does no I/O.
func New(c Config, indices *vrfindex.Store, reg *status.Registry, log *slog.Logger) *Translation {
	readings := &loadbalancer.Book{}
	return &Translation{
		indices: indices, reg: reg, log: log, retain: c.Retain, readings: readings,
		tenants: evpn.NewTranslator(c.EVPN, indices, readings), exposure: exposure.NewTranslator(c.Exposure, indices, readings),
	}
}

// Readings are what load balancers say, kept once for all that read them in a turn.
func (t *Translation) Readings() *loadbalancer.Book { return t.readings }

// Consume has each of the consumers called, in this order, for each event. Call it before the first one.
func (t *Translation) Consume(consumers ...Consumer) { t.consumers = consumers }

// Take takes an event of OVN. A pass of a pipeline may run at any moment: what is not in sync any
// more is told before the change, and what is now in sync after it.
func (t *Translation) Take(e ovn.Event) {
	arrived := time.Now()
	t.turn.Lock()
	defer t.turn.Unlock()
	t.events++
	t.log.Debug("an event of OVN is taken", "event", t.events, "southbound", e.InSync.SB, "northbound", e.InSync.NB)
	s := Step{Event: e, Number: t.events, Diff: t.step(e), Siblings: e.Rows.Siblings(), Arrived: arrived}
	t.siblings = s.Siblings
	t.inSync.Store(t.lessInSync(e.InSync))
	if t.gateway != nil {
		t.gateway.Step(s)
	}
	t.inSync.Store(&e.InSync)
	for _, c := range t.consumers {
		c.Take(e)
	}
	if t.gateway != nil {
		t.gateway.Synced()
	}
	t.report()
	if e.InSync.All() {
		t.retainIndices()
	}
}

// step computes what OVN asks for: the tenants' part, and beside it what is exposed without EVPN.
func (t *Translation) step(e ovn.Event) wanted.Difference {
	t.mu.Lock()
	defer t.mu.Unlock()
	tenants := t.tenants.Step(e.Rows, e.Dirty, e.InSync.SB)
	return tenants.Merge(t.exposure.Step(e.Rows, t.tenants, exposure.Change{
		Rows: e.Dirty.Exposure || e.Dirty.All || !tenants.Empty(), Complete: e.InSync.SB, Northbound: e.InSync.Remembered().NB,
	}))
}

// Asked is all that OVN asks for.
func (t *Translation) Asked() wanted.Set {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.tenants.Tables()
	all.Merge(t.exposure.Tables())
	return all
}

// lessInSync is what was in sync and still is.
func (t *Translation) lessInSync(next ovn.InSync) *ovn.InSync {
	old := t.inSync.Load()
	if old == nil {
		return &ovn.InSync{}
	}
	return &ovn.InSync{SB: old.SB && next.SB, VSwitch: old.VSwitch && next.VSwitch, NB: old.NB && next.NB}
}

// report tells of what is wrong in what OVN asks for.
func (t *Translation) report() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.tenants.Complaints(); now != t.complaints {
		t.complaints = now
		t.reg.Reporter("evpn").Replace(t.tenants.Objects())
	}
	if now := t.exposure.Complaints(); now != t.exposureComplaints {
		t.exposureComplaints = now
		t.reg.Reporter("exposure").Replace(t.exposure.Objects())
	}
}

// retainIndices frees, once, the indices of VRFs that went while no sluiced ran.
func (t *Translation) retainIndices() {
	if !t.retain {
		return
	}
	t.retain = false
	kept := wanted.Rows(t.Asked(), intent.VRFs)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.indices.Retain(func(vni intent.VNI) bool { _, ok := kept[vni]; return ok }, t.tenants.Names)
}

// Attach makes g the gateway that is told of events, and gives it what is known.
func (t *Translation) Attach(g Gateway) {
	t.turn.Lock()
	defer t.turn.Unlock()
	t.gateway = g
	g.Begin(t.Asked(), t.siblings)
}

// Detach ends that.
func (t *Translation) Detach() {
	t.turn.Lock()
	defer t.turn.Unlock()
	t.gateway = nil
}

// SetFacts has the paths of VRFs chosen anew by facts that g has found out: a step, as one of OVN
// is. Call it with OVN's rows in view (ovn.Follower.View).
func (t *Translation) SetFacts(g Gateway, f evpn.PathFacts) {
	t.turn.Lock()
	defer t.turn.Unlock()
	if t.gateway != g {
		return
	}
	t.mu.Lock()
	d := t.tenants.SetFacts(f)
	t.mu.Unlock()
	g.ChangePaths(d)
}

// RunIndices writes the indices of VRFs until ctx ends. VRFs wait for theirs.
func (t *Translation) RunIndices(ctx context.Context) error { return t.indices.Run(ctx, t.indicesKept) }

func (t *Translation) indicesKept(err error) {
	rep := t.reg.Reporter("indices")
	if err != nil {
		rep.Set(status.Object{Kind: "node", Key: "vrf-indices", State: status.Error, Reason: reason.NotKept, Error: err.Error()})
	} else {
		rep.Delete("node", "vrf-indices")
	}
	t.turn.Lock()
	defer t.turn.Unlock()
	if t.gateway != nil {
		t.gateway.IndicesKept()
	}
}

// aliveInterval is between two tries of Alive.
const aliveInterval = 5 * time.Millisecond

// Alive waits for a turn: a daemon that gets none is stuck.
func (t *Translation) Alive(ctx context.Context) error {
	for !t.turn.TryLock() {
		if !loop.Sleep(ctx, aliveInterval) {
			return fmt.Errorf("the control plane has not answered: %w", ctx.Err())
		}
	}
	t.turn.Unlock()
	return nil
}
