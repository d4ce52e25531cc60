// Package nexthops follows the paths to VTEPs: which have a route, which a path that is narrow, and
// which devices on them drop packets.
package nexthops

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/controlplane/nexthop"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/loop"
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

// Config is what next hops are judged by.
type Config struct {
	VTEP netip.Addr // the node's own
	MTU  int        // of the underlay
	// ResolveViaDefault: a default route is enough.
	ResolveViaDefault bool
}

// Speaker is BGP: bgp.GoBGP.
type Speaker interface {
	NextHops() []netip.Addr
	SetUnreachable(map[netip.Addr]struct{})
	Imported(map[netip.Addr]string) map[netip.Addr]string
	Status(context.Context) (bgp.Status, error)
}

// Node is what is asked of the node.
type Node interface {
	// Imported tells whether the tables have been told what the neighbours sent.
	Imported() bool
	// NoVTEP says why the node does not have its VTEP; empty: it does.
	NoVTEP() string
	// SetPathMTUs takes the MTUs of narrow paths; all: of the others it is known that they are none.
	SetPathMTUs(mtus map[netip.Addr]int, all bool) error
	// Devices are those of the node's tunnels and provider bridges.
	Devices() []string
}

// NextHops follows the path to each VTEP.
type NextHops struct {
	cfg     Config
	node    Node
	speaker Speaker
	reg     *status.Registry
	log     *slog.Logger
	facts   *link.Facts
	tracker nexthop.Tracker
	changed loop.Signal
	drops   deviceDrops

	mu sync.Mutex
	// What was decided last, for people: which VTEPs have no route, and which a path that
	// takes less than the underlay's MTU.
	lost   map[netip.Addr]string
	narrow map[netip.Addr]link.Path
	// routed: some VTEP has a route.
	routed bool
}

// New makes it. It does no I/O.
func New(cfg Config, node Node, speaker Speaker, reg *status.Registry, log *slog.Logger) *NextHops {
	return &NextHops{cfg: cfg, node: node, speaker: speaker, reg: reg, log: log, facts: link.New(netns.Namespace{}), changed: loop.NewSignal()}
}

// Look has the paths looked up soon.
func (h *NextHops) Look() { h.changed.Send() }

// Run looks the paths up when routes have changed, or VTEPs have come: however many at once,
// each VTEP once. It costs nothing while nothing changes.
func (h *NextHops) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return kernel.WatchRoutes(ctx, netns.Namespace{}, h.Look) })
	group.Go(func() error {
		if err := kernel.WatchPathMTUs(ctx, netns.Namespace{}, h.Look); err != nil {
			h.log.Warn("cannot listen for ICMP; path MTUs are not learned; set fabric.mtu", "error", err)
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
			if !loop.Sleep(ctx, pathsSettle) {
				return nil
			}
			begun := time.Now()
			again = h.decide(ctx)
			if !loop.Sleep(ctx, pathsShare*time.Since(begun)) {
				return nil
			}
		}
	})
	group.Go(func() error { return loop.Every(ctx, dropsLook, nil, h.lookAtDrops) })
	return group.Wait()
}

// decide looks up all paths and acts on them. It returns when to do so again by itself.
func (h *NextHops) decide(ctx context.Context) <-chan time.Time {
	all := h.node.Imported() // asked before the VTEPs: all that BGP has told of are among them
	vteps := h.speaker.NextHops()
	viaDefault := h.cfg.ResolveViaDefault
	paths, err := h.facts.Paths(link.Query{Source: h.cfg.VTEP, Default: !viaDefault}, vteps)
	if err != nil {
		h.log.Warn("cannot look up paths to VTEPs", "error", err)
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
	h.speaker.SetUnreachable(lost)
	// A VTEP that no VRF here has routes of is nobody's problem.
	result.Lost = h.speaker.Imported(result.Lost)
	narrow := narrowPaths(paths, h.cfg.MTU)
	err = h.node.SetPathMTUs(mtusOf(narrow), all)
	if err != nil {
		h.log.Warn("the MTUs of paths cannot be set", "error", err)
	}
	h.reg.Reporter(reports).Replace(append(lostNextHops(result, h.cfg.VTEP, len(vteps), h.node.NoVTEP()), tooNarrow(narrow, h.cfg.MTU)...))
	h.mu.Lock()
	h.lost, h.narrow, h.routed = result.Lost, narrow, !result.CutOff && len(vteps) > len(lost)
	h.mu.Unlock()
	h.drops.setUnderlay(devicesOf(paths))
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
func (h *NextHops) neighbors(ctx context.Context) (known int, reachable bool) {
	s, err := h.speaker.Status(ctx)
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

// reports is the source of what is reported of VTEPs.
const reports = "next-hops"

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
		first := fmt.Sprintf("check the node's links and routes; with a deleted address the kernel deletes the routes that have it as preferred source (src %s)", own)
		if noVTEP != "" {
			first = "first repair the node's own VTEP: " + noVTEP
		}
		out = append(out, status.Object{Kind: "vtep", Key: anyVTEP, State: status.Error, Reason: reason.CutOff,
			Error: fmt.Sprintf("the node has no route %s: packets to the fabric are lost; %s", to, first)})
	}
	return out
}

// Forget takes back what was reported.
func (h *NextHops) Forget() {
	h.reg.Reporter(reports).Replace(nil)
	h.reg.Reporter(dropReports).Replace(nil)
}
