// Package paths chooses between the eBPF path and the kernel path by what the node has found out,
// and compares what both would do.
package paths

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/evpn"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/beat"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

const (
	// factsPause is between two looks at the maps that were full.
	factsPause = 30 * time.Second
	// roomLeft is the part of a map that stays free when a VRF comes back to it, so
	// that it does not leave again at once.
	roomLeft = 0.1
)

// Facts are what was found out that speaks against the eBPF path. It is safe
// for concurrent use.
type Facts struct {
	mu   sync.Mutex
	full map[intent.VNI]string
	// changed: the facts are others.
	changed loop.Signal
}

// NewFacts makes them: nothing has been found out.
func NewFacts() *Facts {
	return &Facts{full: map[intent.VNI]string{}, changed: loop.NewSignal()}
}

// Note takes what became of rows of the maps of routes.
func (f *Facts) Note(events []reconcile.Event[intent.RouteKey]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range events {
		if !errors.Is(e.Err, ebpf.ErrFull) || f.full[e.Key.VNI] != "" {
			continue
		}
		f.full[e.Key.VNI] = e.Err.Error()
		f.changed.Send()
	}
}

func (f *Facts) facts() evpn.PathFacts {
	f.mu.Lock()
	defer f.mu.Unlock()
	return evpn.PathFacts{Full: maps.Clone(f.full)}
}

// forget drops the facts of VRFs for which there is room now.
func (f *Facts) forget(room func(intent.VNI) bool) (forgot bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, vni := range slices.Sorted(maps.Keys(f.full)) {
		if room(vni) {
			delete(f.full, vni)
			forgot = true
		}
	}
	return forgot
}

// WatchFacts has the paths of VRFs chosen again, by choose, when a fact has changed, and once at the
// start: what the translation knows may be of a node that has ended.
func (p *Paths) WatchFacts(ctx context.Context, choose func(evpn.PathFacts)) error {
	tick := beat.New(factsPause)
	defer tick.Stop()
	choose(p.facts.facts())
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.facts.changed:
		case <-tick.C:
			if !p.facts.forget(p.roomFor) {
				continue
			}
		}
		choose(p.facts.facts())
	}
}

// roomFor tells whether the routes of a VRF on the kernel path would fit into the
// maps with some to spare.
func (p *Paths) roomFor(vni intent.VNI) bool {
	rows := map[string]int{}
	wanted, _ := tables.Of(p.tables, intent.KernelRoutes).Rows()
	for k := range wanted {
		if k.VNI == vni {
			rows[ebpf.MapOf(k)]++
		}
	}
	for _, f := range p.fills() {
		if f.Table == tables.Of(p.tables, intent.Routes).Name() && float64(f.Used+rows[f.Map]) > float64(f.Max)*(1-roomLeft) {
			return false
		}
	}
	return true
}
