package main

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/controlplane/nexthop"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

const (
	// pathsSettle is from a change to the lookup: routes that are replaced are gone for a
	// moment, and change together.
	pathsSettle = 20 * time.Millisecond
	// pathsShare bounds what lookups cost while routes change without a pause: one part in so
	// many of a processor.
	pathsShare = 20
	// pathsRetry follows a lookup that failed, or that was of some VTEPs alone: BGP is not in
	// sync yet.
	pathsRetry = time.Second
)

// pathsAgain is between two lookups while a path is narrow or lost: the kernel forgets after ten
// minutes what it has learned (net.ipv4.route.mtu_expires), and tells nobody; nor does BGP when
// a VRF begins to import the routes of a VTEP that is lost.
const pathsAgain = time.Minute

// nextHops follows the way to each VTEP.
type nextHops struct {
	n       *node
	facts   *link.Facts
	tracker nexthop.Tracker
	changed chan struct{} // capacity 1

	mu sync.Mutex
	// What was decided last, for people: which VTEPs have no route, and which a path that
	// takes less than the underlay's MTU.
	lost   map[netip.Addr]string
	narrow map[netip.Addr]link.Path
	// routed: some VTEP has a route.
	routed bool
}

func newNextHops(n *node) *nextHops {
	return &nextHops{n: n, facts: link.New(netns.Namespace{}), changed: make(chan struct{}, 1)}
}

// look has the ways looked up soon.
func (h *nextHops) look() {
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// run looks the ways up when routes have changed, or VTEPs have come: however many at once,
// each VTEP once. It costs nothing while nothing changes.
func (h *nextHops) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return kernel.WatchRoutes(ctx, netns.Namespace{}, h.look) })
	group.Go(func() error {
		if err := kernel.WatchPathMTUs(ctx, netns.Namespace{}, h.look); err != nil {
			h.n.d.log.Warn("cannot listen for ICMP; path MTUs are not learned; set fabric.mtu", "error", err)
		}
		return nil
	})
	group.Go(func() error {
		var again <-chan time.Time
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-h.changed:
			case <-again:
			}
			if !sleep(ctx, pathsSettle) {
				return nil
			}
			begun := time.Now()
			again = h.decide(ctx)
			if !sleep(ctx, pathsShare*time.Since(begun)) {
				return nil
			}
		}
	})
	return group.Wait()
}

// sleep tells whether ctx goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// decide looks up all ways and acts on them. It returns when to do so again by itself.
func (h *nextHops) decide(ctx context.Context) <-chan time.Time {
	all := h.n.imported.Load() // asked before the VTEPs: all that BGP has told of are among them
	vteps := h.n.speaker.NextHops()
	viaDefault := h.n.d.cfg.Fabric.ResolveViaDefault
	paths, err := h.facts.Paths(link.Query{Source: h.n.id.VTEP, Default: !viaDefault}, vteps)
	if err != nil {
		h.n.d.log.Warn("cannot look up paths to VTEPs", "error", err)
		return time.After(pathsRetry)
	}
	seen := nexthop.Seen{Refused: make(map[netip.Addr]string, len(paths)), Neighbors: func() (int, bool) { return h.neighbors(ctx) }}
	for a, p := range paths {
		seen.Refused[a] = p.Refused
		if p.Default && !viaDefault {
			seen.Refused[a] = "only a default route"
		}
	}
	now := time.Now()
	result := h.tracker.Decide(seen, now)
	lost := make(map[netip.Addr]struct{}, len(result.Lost))
	for a := range result.Lost {
		lost[a] = struct{}{}
	}
	h.n.speaker.SetUnreachable(lost)
	// A VTEP that no VRF here has routes of is nobody's problem.
	result.Lost = h.n.speaker.Imported(result.Lost)
	narrow := narrowPaths(paths, h.n.mtu)
	err = h.n.dp.SetPathMTUs(mtusOf(narrow), all)
	if err != nil {
		h.n.d.log.Warn("the MTUs of paths cannot be set", "error", err)
	}
	h.n.d.reg.Reporter(nextHopReports).Replace(append(lostNextHops(result, h.n.id.VTEP, len(vteps), h.n.vtep.gate()), tooNarrow(narrow, h.n.mtu)...))
	h.mu.Lock()
	h.lost, h.narrow, h.routed = result.Lost, narrow, !result.CutOff && len(vteps) > len(lost)
	h.mu.Unlock()
	h.n.drops.setUnderlay(devicesOf(paths))
	switch {
	case err != nil, !all:
		return time.After(pathsRetry)
	case !result.Again.IsZero():
		return time.After(result.Again.Sub(now))
	case len(narrow) > 0, len(lost) > 0, result.CutOff:
		return time.After(pathsAgain)
	}
	return nil
}

// neighbors tells how many BGP neighbours have an address, and whether there is a route to one.
func (h *nextHops) neighbors(ctx context.Context) (known int, reachable bool) {
	s, err := h.n.speaker.Status(ctx)
	if err != nil || len(s.Neighbors) == 0 {
		return 0, true // nothing is held back for what is not known
	}
	var to []netip.Addr
	for _, b := range s.Neighbors {
		if b.Address.IsValid() {
			to = append(to, b.Address)
		}
	}
	paths, err := h.facts.Paths(link.Query{}, to)
	return len(to), err != nil || slices.ContainsFunc(slices.Collect(maps.Values(paths)), func(p link.Path) bool { return p.Refused == "" })
}

// nextHopReports is the source of what is reported of VTEPs.
const nextHopReports = "next-hops"

// anyVTEP is the key of the object that tells of all VTEPs at once.
const anyVTEP = "all"

// lostNextHops are the VTEPs that routes of VRFs may not lead to.
// noVTEP says why the node does not have its own; "": it does.
func lostNextHops(r nexthop.Result, own netip.Addr, all int, noVTEP string) []status.Object {
	var out []status.Object
	for _, a := range slices.SortedFunc(maps.Keys(r.Lost), netip.Addr.Compare) {
		out = append(out, status.Object{Kind: "vtep", Key: a.String(), State: status.Error, Reason: reason.RouteUnreachable,
			Error: fmt.Sprintf("no route leads to this VTEP (%s), so no route of a VRF uses it: 'ip route get %s from %s' shows what the kernel does", r.Lost[a], a, own)})
	}
	if r.CutOff {
		to := fmt.Sprintf("to any of %d VTEPs, and none to a BGP neighbour", all)
		if all == 0 {
			to = "to a BGP neighbour, and knows no VTEP"
		}
		first := fmt.Sprintf("look at the node's links and routes; an address that was deleted took the routes along that had it as preferred source (src %s)", own)
		if noVTEP != "" {
			first = "begin with what is wrong with the node's own VTEP: " + noVTEP
		}
		out = append(out, status.Object{Kind: "vtep", Key: anyVTEP, State: status.Error, Reason: reason.CutOff,
			Error: fmt.Sprintf("the node has no route %s: packets to the fabric are lost; %s", to, first)})
	}
	return out
}
