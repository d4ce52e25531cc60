package gateway

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/controlplane/leaks"
	"github.com/ovn-sluice/sluice/pkg/beat"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/loop"
)

const (
	leakInterval = 2 * time.Second
	// leakShare bounds the CPU time while routes change all the time: 1 in so much.
	leakShare = 50
	// leakReports is the source of what watchLeaks reports.
	leakReports = "guard"
)

// watchLeaks reports what may join two tenants. Nothing is taken down for it.
func (g *Gateway) watchLeaks(ctx context.Context) error {
	var wait time.Duration
	var seen bgp.Sightings
	var changes, steps uint64
	for first := true; loop.Sleep(ctx, wait); {
		begin := time.Now()
		routes, claims := g.speaker.RouteChanges(), g.steps.Steps()
		if routes != changes {
			seen = g.speaker.Sightings()
		}
		if first || routes != changes || claims != steps {
			g.reg.Reporter(leakReports).Replace(leaks.Check(g.uses(seen), sharedRDs(seen), sharedVTEPs(seen), g.configured))
		}
		changes, steps, first = routes, claims, false
		// A look takes time in the number of routes.
		wait = max(beat.Until(leakInterval), leakShare*time.Since(begin))
	}
	return nil
}

// uses are those of this node, of OVN and of BGP.
func (g *Gateway) uses(seen bgp.Sightings) []leaks.Use {
	var out []leaks.Use
	for _, c := range g.steps.Claims() {
		out = append(out, leaks.Use{Where: "port " + c.Port, VNI: c.VNI, Import: c.Policy.Import, Export: c.Policy.Export, AutoImport: c.Policy.AutoImport})
	}
	for _, s := range seen.Uses {
		out = append(out, leaks.Use{Where: "routes of VTEP " + s.VTEP.String(), VNI: s.Label, Export: s.Targets})
	}
	return out
}

func sharedRDs(seen bgp.Sightings) []leaks.RD {
	var out []leaks.RD
	for rd, vteps := range seen.RDs {
		out = append(out, leaks.RD{RD: rd, VTEPs: vteps})
	}
	slices.SortFunc(out, func(a, b leaks.RD) int { return cmp.Compare(a.RD, b.RD) })
	return out
}

func sharedVTEPs(seen bgp.Sightings) []leaks.VTEP {
	var out []leaks.VTEP
	for addr, nodes := range seen.VTEPs {
		v := leaks.VTEP{Addr: addr}
		for _, node := range nodes {
			v.Nodes = append(v.Nodes, node.String())
		}
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b leaks.VTEP) int { return a.Addr.Compare(b.Addr) })
	return out
}

// configured tells whether the configuration names a route target for a VRF.
func (g *Gateway) configured(vni intent.VNI, rt intent.RouteTarget) bool {
	c := g.cfg.EVPN.VRFs[vni]
	return slices.Contains(c.Import, rt) || slices.Contains(c.Export, rt)
}
