package paths

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/beat"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// Paths compares the paths of a gateway node's VRFs.
type Paths struct {
	tables *tables.Tables
	facts  *Facts
	// decide is kernel.Path.Decide, hashPorts kernel.HashHasPorts, fills ebpf.Dataplane.Fills.
	decide    func([]intent.RouteKey) ([]kernel.Decision, error)
	hashPorts func(ipv6 bool) (bool, error)
	fills     func() []ebpf.Fill
	reg       *status.Registry
	log       *slog.Logger
}

// New makes it. It does no I/O.
func New(t *tables.Tables, facts *Facts, decide func([]intent.RouteKey) ([]kernel.Decision, error), hashPorts func(ipv6 bool) (bool, error), fills func() []ebpf.Fill, reg *status.Registry, log *slog.Logger) *Paths {
	return &Paths{tables: t, facts: facts, decide: decide, hashPorts: hashPorts, fills: fills, reg: reg, log: log}
}

const (
	// parityPause is between two looks at a part of the routes on the kernel path.
	parityPause = 10 * time.Second
	// parityShare bounds the CPU time of looks: 1 in so much.
	parityShare = 50
	// parityBatch is how many routes one look compares.
	parityBatch = 256
	// parityRest is the longest rest after a look. What a look takes is mostly CPU
	// time, but on a node that is out of it most of it is waiting.
	parityRest = time.Minute
	// Reports is the source of what WatchParity reports.
	Reports = "parity"
)

// WatchParity compares, a part at a time, what the kernel would do for each
// destination of the VRFs on the kernel path with what the eBPF path would do by the
// same rows. What differs is reported, and read back to be mended; so is a setting of
// the node by which flows are spread otherwise.
func (p *Paths) WatchParity(ctx context.Context) error {
	found := map[intent.RouteKey]status.Change{}
	var after intent.RouteKey
	var rested time.Time
	for loop.Sleep(ctx, beat.Until(parityPause)) {
		all := p.onKernelPath()
		maps.DeleteFunc(found, func(k intent.RouteKey, _ status.Change) bool {
			_, there := slices.BinarySearchFunc(all, k, Compare)
			return !there
		})
		if begin := time.Now(); len(all) > 0 && begin.After(rested) {
			var part []intent.RouteKey
			part, after = nextPart(all, after)
			p.lookForDifferences(append(part, someOf(found)...), found)
			rested = time.Now().Add(min(parityShare*time.Since(begin), parityRest))
		}
		p.reg.Reporter(Reports).Replace(append(differences(found), p.oneWay()...))
	}
	return nil
}

// nextPart are the keys to look at after those up to a key, and the last of them.
func nextPart(all []intent.RouteKey, after intent.RouteKey) (part []intent.RouteKey, last intent.RouteKey) {
	next, _ := slices.BinarySearchFunc(all, after, func(k, last intent.RouteKey) int { return cmp.Or(Compare(k, last), -1) })
	if next == len(all) {
		next = 0
	}
	part = slices.Clone(all[next:min(next+parityBatch, len(all))])
	return part, part[len(part)-1]
}

// someOf are keys of what was found, which is looked at each time: it may have been
// mended.
func someOf(found map[intent.RouteKey]status.Change) []intent.RouteKey {
	keys := slices.SortedFunc(maps.Keys(found), Compare)
	return keys[:min(parityBatch, len(keys))]
}

// lookForDifferences takes note of what differs of some routes.
func (p *Paths) lookForDifferences(part []intent.RouteKey, found map[intent.RouteKey]status.Change) {
	differ, err := p.compareDecisions(part)
	if err != nil {
		p.log.Warn("the kernel path cannot be compared with the eBPF path", "error", err)
		return
	}
	for _, k := range part {
		c, differs := differ[k]
		_, known := found[k]
		delete(found, k)
		if !differs {
			continue
		}
		found[k] = c
		if !known {
			p.log.Warn("the kernel path differs from the eBPF path", "vni", k.VNI, "prefix", k.Prefix, "wanted", c.Wanted, "actual", c.Actual)
		}
	}
	if len(differ) > 0 {
		p.tables.RelistKernelPath()
	}
}

func differences(found map[intent.RouteKey]status.Change) []status.Object {
	out := make([]status.Object, 0, len(found))
	for k, c := range found {
		out = append(out, status.Object{Kind: "kernel-route", Key: k.String(), State: status.Error, Reason: reason.PathDiffers,
			Error: fmt.Sprintf("the kernel would %s; wanted: %s", c.Actual, c.Wanted)})
	}
	return out
}

// Compare orders keys by VNI and prefix.
func Compare(a, b intent.RouteKey) int {
	return cmp.Or(cmp.Compare(a.VNI, b.VNI), a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()))
}

// onKernelPath are the destinations that the kernel decides on, in order.
func (p *Paths) onKernelPath() []intent.RouteKey {
	var out []intent.RouteKey
	p.tables.Pipeline.View(func() {
		tables.Of(p.tables, intent.KernelRoutes).EachLocked(func(k intent.RouteKey, _ intent.Route) { out = append(out, k) })
	})
	slices.SortFunc(out, Compare)
	return out
}

// compareDecisions compares for each key what the eBPF path would do with an address
// of it, the longest match among the rows, with what the kernel would do. Left out is
// what was not in place all the time, which the tables report themselves.
func (p *Paths) compareDecisions(keys []intent.RouteKey) (map[intent.RouteKey]status.Change, error) {
	wanted := make([]intent.Route, len(keys))
	for i, k := range keys {
		wanted[i] = p.settledMatch(k)
	}
	decided, err := p.decide(keys)
	if err != nil {
		return nil, err
	}
	out := map[intent.RouteKey]status.Change{}
	for i, k := range keys {
		want := wanted[i]
		if want == (intent.Route{}) || decided[i].Text == "" || agrees(want, decided[i]) || p.settledMatch(k) != want {
			continue
		}
		out[k] = status.Change{Table: tables.Of(p.tables, intent.KernelRoutes).Name(), Key: k.String(), Action: "change", Wanted: describe(want), Actual: decided[i].Text,
			Error: "the kernel path and the eBPF path decide differently"}
	}
	return out, nil
}

// agrees: a drop has no route that could be told.
func agrees(want intent.Route, d kernel.Decision) bool {
	if want.Kind == intent.RouteBlock {
		return d.Route.Kind == intent.RouteBlock
	}
	return d.Route == want
}

// settledMatch is the row that decides on the sample of a destination; the zero value
// while one that might is not in place, or is kept although nothing asks for it.
func (p *Paths) settledMatch(k intent.RouteKey) (match intent.Route) {
	a := kernel.SampleOf(k.Prefix)
	p.tables.Pipeline.View(func() {
		match, _ = intent.LongestMatch(netip.PrefixFrom(a, a.BitLen()), func(prefix netip.Prefix) (intent.Route, bool) {
			at := intent.NewRouteKey(k.VNI, prefix)
			r, wanted := tables.Of(p.tables, intent.KernelRoutes).LookupLocked(at)
			there := tables.Of(p.tables, intent.KernelRoutes).MayBeLocked(at, func(intent.Route) bool { return true })
			if !tables.Of(p.tables, intent.KernelRoutes).ProgrammedLocked(at) {
				r = intent.Route{}
			}
			return r, wanted || there
		})
	})
	return match
}

// describe says what a row asks for.
func describe(r intent.Route) string {
	switch r.Kind {
	case intent.RouteLocal:
		return fmt.Sprintf("route %s through %s", r.Key.Prefix, r.Gateway)
	case intent.RouteRemote:
		return fmt.Sprintf("route %s to %s", r.Key.Prefix, r.NextHops)
	}
	return fmt.Sprintf("route %s: drop it", r.Key.Prefix)
}

// Diff is what the kernel would do otherwise than the eBPF path, of all destinations that it
// decides on, in order.
func (p *Paths) Diff() (out []status.Change, err error) {
	differ, err := p.compareDecisions(p.onKernelPath())
	for _, k := range slices.SortedFunc(maps.Keys(differ), Compare) {
		out = append(out, differ[k])
	}
	return out, err
}
