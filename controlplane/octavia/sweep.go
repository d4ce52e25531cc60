package octavia

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia/rowform"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
)

const (
	// sweepPause is between two looks at Neutron's ports.
	sweepPause = time.Minute
	// LeastPatience is how long a port is without a load balancer before it is deleted, at least: one that
	// was made for a call that goes on has none yet.
	LeastPatience = 10 * time.Minute
)

// NeutronPorts are the ports of VIPs that were made at Neutron: a *neutron.Client.
type NeutronPorts interface {
	VIPPorts(context.Context) (ids []string, err error)
	DeletePort(ctx context.Context, id string) error
}

// Sweeper deletes ports that were made at Neutron for VIPs and that no load balancer has: Neutron and
// Northbound are two stores, and who writes both may be killed in between. Of several replicas the one that
// leads acts.
type Sweeper struct {
	store    *northbound.Store
	ports    NeutronPorts
	patience time.Duration
	log      *slog.Logger
	now      func() time.Time

	// alone has when ports were first seen without a load balancer.
	alone map[string]time.Time
	told  string // the last failure that was told
}

// NewSweeper makes a Sweeper. It waits for patience, that has to be longer than any call takes, and at least
// for LeastPatience.
func NewSweeper(store *northbound.Store, ports NeutronPorts, patience time.Duration, log *slog.Logger) *Sweeper {
	return &Sweeper{store: store, ports: ports, patience: max(patience, LeastPatience), log: log, now: time.Now, alone: map[string]time.Time{}}
}

// Run looks each minute, until ctx ends.
func (s *Sweeper) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(sweepPause):
		}
		if !s.store.Leads() {
			clear(s.alone)
			continue
		}
		told := ""
		if err := s.look(ctx); err != nil && ctx.Err() == nil {
			if told = err.Error(); told != s.told {
				s.log.Warn("ports without a load balancer cannot be deleted at Neutron", "error", err)
			}
		}
		s.told = told
	}
}

// look deletes the ports that have been without a load balancer for long.
func (s *Sweeper) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sweepPause)
	defer cancel()
	ids, err := s.ports.VIPPorts(ctx)
	if err != nil {
		return err
	}
	// Read after the list: it has the load balancer of each port whose call was over by then.
	snapshot, err := s.store.Barrier(ctx)
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for row := range northbound.All[*nb.LoadBalancer](snapshot) {
		for _, id := range rowform.Ports(row) {
			used[id] = true
		}
	}
	before := s.alone
	s.alone = map[string]time.Time{}
	var errs []error
	for _, id := range ids {
		// A port that Northbound does not have is another cloud's, or this Northbound was lost.
		if used[id] || len(northbound.Find(snapshot, northbound.SwitchPortByName, id)) == 0 {
			continue
		}
		since, seen := before[id]
		if !seen {
			since = s.now()
		}
		s.alone[id] = since
		if s.now().Sub(since) < s.patience {
			continue
		}
		if err := s.ports.DeletePort(ctx, id); err != nil {
			errs = append(errs, err)
			continue
		}
		s.log.Info("a port without a load balancer is deleted at Neutron", "port", id)
	}
	return errors.Join(errs...)
}
