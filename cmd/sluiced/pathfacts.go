package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/evpn"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/beat"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/metrics/nodemetrics"
	"github.com/ovn-sluice/sluice/pkg/reason"
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

// pathFacts are what was found out that speaks against the eBPF path. It is safe
// for concurrent use.
type pathFacts struct {
	mu   sync.Mutex
	full map[intent.VNI]string
	// changed has room for one message: the facts are others.
	changed chan struct{}
}

func newPathFacts() *pathFacts {
	return &pathFacts{full: map[intent.VNI]string{}, changed: make(chan struct{}, 1)}
}

// note takes what became of rows of the maps of routes.
func (f *pathFacts) note(events []reconcile.Event[intent.RouteKey]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range events {
		if !errors.Is(e.Err, ebpf.ErrFull) || f.full[e.Key.VNI] != "" {
			continue
		}
		f.full[e.Key.VNI] = e.Err.Error()
		select {
		case f.changed <- struct{}{}:
		default:
		}
	}
}

func (f *pathFacts) facts() evpn.PathFacts {
	f.mu.Lock()
	defer f.mu.Unlock()
	return evpn.PathFacts{Full: maps.Clone(f.full)}
}

// forget drops the facts of VRFs for which there is room now.
func (f *pathFacts) forget(room func(intent.VNI) bool) (forgot bool) {
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

// watchPaths has the paths of VRFs chosen again when a fact has changed.
func (n *node) watchPaths(ctx context.Context) error {
	tick := beat.New(factsPause)
	defer tick.Stop()
	// What the translation knows may be of a node that has ended.
	n.tellPathFacts()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-n.pathFacts.changed:
		case <-tick.C:
			if !n.pathFacts.forget(n.roomFor) {
				continue
			}
		}
		n.tellPathFacts()
	}
}

// tell has the translation take the facts: it reads OVN's rows for that.
func (n *node) tellPathFacts() {
	n.d.follower.View(func(*ovn.Rows) { n.d.steps.SetFacts(n, n.pathFacts.facts()) })
}

// roomFor tells whether the routes of a VRF on the kernel path would fit into the
// maps with some to spare.
func (n *node) roomFor(vni intent.VNI) bool {
	rows := map[string]int{}
	wanted, _ := tables.Of(n.tables, intent.KernelRoutes).Rows()
	for k := range wanted {
		if k.VNI == vni {
			rows[ebpf.MapOf(k)]++
		}
	}
	for _, f := range n.dp.Fills() {
		if f.Table == tables.Of(n.tables, intent.Routes).Name() && float64(f.Used+rows[f.Map]) > float64(f.Max)*(1-roomLeft) {
			return false
		}
	}
	return true
}

// pathMetrics counts the VRFs by the path that carries them, and why.
func (n *node) pathMetrics() ([]nodemetrics.Path, error) {
	wanted, _ := tables.Of(n.tables, intent.VRFs).Rows()
	count := map[nodemetrics.Path]int{}
	for vni := range wanted {
		count[nodemetrics.Path{Path: n.carrier(vni).String(), Reason: n.choice(vni).Reason}]++
	}
	var out []nodemetrics.Path
	for p, vrfs := range count {
		p.VRFs = vrfs
		out = append(out, p)
	}
	return out, nil
}

// carrier is the path that carries a VRF's packets, or is to do so.
func (n *node) carrier(vni intent.VNI) intent.Path {
	if now, ok := n.tables.Path(vni); ok {
		return now
	}
	v, _ := tables.Of(n.tables, intent.VRFs).Wanted(vni)
	return v.Path
}

// choice is why a VRF is to be on its path.
func (n *node) choice(vni intent.VNI) evpn.Choice {
	if vni == intent.DefaultVRF {
		return evpn.Choice{Reason: reason.PathOnly}
	}
	c, _ := n.d.steps.Choice(vni)
	return c
}
