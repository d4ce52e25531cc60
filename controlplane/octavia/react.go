package octavia

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia/network"
	"github.com/ovn-sluice/sluice/controlplane/octavia/rowform"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
)

const (
	// reactPause is between two looks: what comes together is one event.
	reactPause = 200 * time.Millisecond
	// reactAgain is when one looks again that has failed, whatever has changed.
	reactAgain = 10 * time.Second
)

// Reactor keeps load balancers as they have to be while router ports and floating IPs come and go,
// ports of VIPs are removed, and members answer probes or do not. Of several replicas the one that leads acts. The first look since
// it leads compares all load balancers, each later one those that had read, the time before, what
// has changed since. Those that are the provider's alone it leaves to the provider.
type Reactor struct {
	store *northbound.Store
	// probes are nil where states of members are not followed.
	probes *Probes
	log    *slog.Logger

	// seen is what the last look was at; nil: the next one compares all. probed is what was known of
	// members.
	seen   *northbound.Snapshot
	probed probes
	watch  northbound.Watch[string]
	// unsettled are those that were not as they have to be when they were compared last, with why they
	// could not be repaired; empty: they were. What repaired them may have been undone since, so that
	// nothing differs from what was seen: they are compared again. The same failure is told once.
	unsettled map[string]string
	leads     bool // as was told
	// looked counts load balancers that were compared.
	looked int
}

// NewReactor makes a Reactor of a store.
func NewReactor(store *northbound.Store, log *slog.Logger) *Reactor {
	return &Reactor{store: store, log: log, unsettled: map[string]string{}}
}

// Heed has states of members follow probes. It is called before Run.
func (r *Reactor) Heed(p *Probes) { r.probes = p }

// Run looks after each change of the database, until ctx ends.
func (r *Reactor) Run(ctx context.Context) error {
	for {
		changed := r.store.Changed()
		known, probed := r.probes.now()
		if leads := r.store.Leads(); leads != r.leads {
			r.leads = leads
			r.log.Info("this replica acts on events", "leads", leads)
		}
		switch s, err := r.store.Snapshot(); {
		case err != nil || !r.store.Leads():
			r.seen = nil
		default:
			r.look(ctx, s, known)
		}
		var again <-chan time.Time
		if len(r.unsettled) > 0 {
			again = time.After(reactAgain)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-probed:
		case <-again:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(reactPause):
		}
	}
}

// look repairs what is not settled.
func (r *Reactor) look(ctx context.Context, s *northbound.Snapshot, known probes) {
	ids := r.due(s, known)
	r.seen, r.probed = s, known
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		settled, err := r.compare(ctx, s, id)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, ovsdb.ErrNotOwner): // another one acts now
			r.seen = nil
			return
		case settled:
			delete(r.unsettled, id)
		case err == nil:
			r.unsettled[id] = ""
		default:
			if r.unsettled[id] != err.Error() {
				r.log.Warn("a load balancer cannot be repaired", "load_balancer", id, "error", err)
			}
			r.unsettled[id] = err.Error()
		}
		if errors.Is(err, northbound.ErrUnavailable) { // so is it for the others
			r.seen = nil
			return
		}
	}
}

// due are the load balancers to be compared.
func (r *Reactor) due(s *northbound.Snapshot, known probes) map[string]struct{} {
	ids := map[string]struct{}{}
	for id := range r.unsettled {
		ids[id] = struct{}{}
	}
	if r.seen == nil {
		for _, id := range IDs(s) {
			ids[id] = struct{}{}
		}
		for _, id := range network.Owners(s) {
			ids[id] = struct{}{}
		}
		r.watch = northbound.Watch[string]{}
		return ids
	}
	changes, judge := readChanges(r.seen, s)
	maps.Copy(ids, r.watch.Touched(changes, judge))
	for _, c := range changes {
		if row, is := c.New.(*nb.LoadBalancer); is && rowform.Is(row) {
			ids[row.Name] = struct{}{}
		}
	}
	if changed := known.changedSince(r.probed); len(changed) > 0 {
		for row := range northbound.All[*nb.LoadBalancer](s) {
			if watches(row, changed) {
				ids[row.Name] = struct{}{}
			}
		}
	}
	return ids
}

// compare repairs a load balancer if it is not settled, or gone.
func (r *Reactor) compare(ctx context.Context, s *northbound.Snapshot, id string) (settled bool, err error) {
	r.looked++
	trace := northbound.NewTrace(s)
	b, err := Load(trace, id)
	settled = err == nil && (!b.Ours() || b.Settled() && b.agrees(r.probed))
	if errors.Is(err, ErrNotFound) {
		r.watch.Drop(id)
		if len(network.OwnedBy(s, id)) > 0 {
			return false, r.release(ctx, id)
		}
		return true, nil
	}
	r.watch.Set(id, trace)
	if err != nil || settled {
		return settled, err
	}
	return false, r.repair(ctx, id)
}

// release removes the ports of a load balancer whose rows somebody else has deleted.
func (r *Reactor) release(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err := r.store.CommitLeading(ctx, "release ports", func(tx *northbound.Tx) error {
		if _, err := Load(tx, id); !errors.Is(err, ErrNotFound) {
			return nil
		}
		network.Release(tx, id)
		return nil
	})
	if err == nil {
		r.log.Info("ports of a deleted load balancer are deleted", "load_balancer", id)
	}
	return err
}

func (r *Reactor) repair(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err := r.store.CommitLeading(ctx, "repair load balancer", func(tx *northbound.Tx) error {
		b, err := Load(tx, id)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err == nil && b.Ours() {
			b.take(r.probed)
			b.Repair()
		}
		return err
	})
	if err == nil {
		r.log.Info("a load balancer is repaired", "load_balancer", id)
	}
	return err
}
