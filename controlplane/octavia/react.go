package octavia

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

// reactPause is between two looks: what comes together is one event.
const reactPause = 200 * time.Millisecond

// Reactor keeps load balancers as they have to be while router ports and floating IPs come and go,
// and ports of VIPs are removed. Of several replicas the one that leads acts. Each look compares all of them,
// so that what was missed is made good by the next. Those that are the provider's alone
// it leaves to the provider.
type Reactor struct {
	store *northbound.Store
	log   *slog.Logger
}

// NewReactor makes a Reactor of a store.
func NewReactor(store *northbound.Store, log *slog.Logger) *Reactor {
	return &Reactor{store: store, log: log}
}

// Run looks after each change of the database, until ctx ends.
func (r *Reactor) Run(ctx context.Context) error {
	told := map[string]string{}
	for {
		changed := r.store.Changed()
		if s, err := r.store.Snapshot(); err == nil && r.store.Leads() {
			r.look(ctx, s, told)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(reactPause):
		}
	}
}

// look repairs what is not settled. The same failure of a load balancer is told once.
func (r *Reactor) look(ctx context.Context, s *northbound.Snapshot, told map[string]string) {
	failed := map[string]string{}
	for _, id := range IDs(s) {
		b, err := Load(s, id)
		if err == nil && (!b.Ours() || b.Settled()) {
			continue
		}
		if err == nil {
			err = r.repair(ctx, id)
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		failed[id] = err.Error()
		if told[id] != failed[id] {
			r.log.Warn("a load balancer cannot be kept as it has to be", "load_balancer", id, "error", err)
		}
	}
	clear(told)
	for id, why := range failed {
		told[id] = why
	}
}

func (r *Reactor) repair(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err := r.store.CommitLeading(ctx, "associate load balancer", func(tx *northbound.Tx) error {
		b, err := Load(tx, id)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err == nil && b.Ours() {
			b.Repair()
		}
		return err
	})
	if errors.Is(err, ovsdb.ErrNotOwner) { // another one acts now
		return nil
	}
	if err == nil {
		r.log.Info("a load balancer is associated anew", "load_balancer", id)
	}
	return err
}
