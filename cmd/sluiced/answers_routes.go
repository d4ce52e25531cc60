package main

import (
	"cmp"
	"context"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// routesOf are the routes of a VRF that there is, or of all for VNI 0.
func (n *node) routesOf(ctx context.Context, vni intent.VNI) ([]status.Route, error) {
	routes, err := n.routesAndSessions(ctx, vni)
	if err != nil {
		return nil, err
	}
	if vni == 0 || len(routes) > 0 {
		return routes, nil
	}
	return routes, n.lacks(vni)
}

// routesAndSessions are the routes, announced only where a neighbour takes them.
func (n *node) routesAndSessions(ctx context.Context, only intent.VNI) ([]status.Route, error) {
	s, err := n.speaker.Status(ctx)
	if err != nil {
		return nil, err
	}
	routes := n.routes(only)
	for _, r := range routes {
		if r.Announced != nil && *r.Announced {
			*r.Announced = s.Carries(familyOf(r.VNI, r.Prefix))
		}
	}
	return routes, nil
}

// familyOf is the address family that carries a route.
func familyOf(vni intent.VNI, p netip.Prefix) bgp.Families {
	switch {
	case vni != intent.DefaultVRF:
		return bgp.FamilyEVPN
	case p.Addr().Is4():
		return bgp.FamilyIPv4
	}
	return bgp.FamilyIPv6
}

// routes are those of the path that carries each VRF. While it changes, the other
// path has them too.
func (n *node) routes(only intent.VNI) []status.Route {
	announced, _ := tables.Of(n.tables, intent.Announcements).Rows()
	ports := n.portNames()
	out := []status.Route{}
	for _, p := range []intent.Path{intent.PathEBPF, intent.PathKernel} {
		out = append(out, n.routesOn(p, only, announced, ports)...)
	}
	slices.SortFunc(out, status.Route.Compare)
	return out
}

func (n *node) routesOn(p intent.Path, only intent.VNI, announced map[intent.RouteKey]intent.Announcement, ports map[intent.GatewayKey]string) []status.Route {
	table := n.routeTable(p)
	wanted, actual := table.Rows()
	elsewhere := n.carriedElsewhere(p)
	var out []status.Route
	for k, r := range wanted {
		if only != 0 && k.VNI != only || elsewhere[k.VNI] {
			continue
		}
		row := status.Route{VNI: k.VNI, Prefix: k.Prefix, Kind: r.Kind.String(), NextHops: r.NextHops.All()}
		if r.Kind == intent.RouteLocal {
			row.Gateway = cmp.Or(ports[r.Gateway], r.Gateway.String())
			row.Announced = status.Known(false)
		}
		var err error
		row.Programmed, err = table.State(k)
		row.State, row.Reason, row.Error = tables.StateOf(row.Programmed, err)
		if _, ok := announced[k]; ok {
			told, err := tables.Of(n.tables, intent.Announcements).State(k)
			row.Announced = &told
			if !told && row.Programmed {
				row.State, row.Reason, row.Error = n.unannouncedState(k, err)
			}
		}
		out = append(out, row)
	}
	why := n.held(table)
	for k, r := range actual {
		if _, ok := wanted[k]; ok || only != 0 && k.VNI != only || elsewhere[k.VNI] {
			continue
		}
		row := status.Route{VNI: k.VNI, Prefix: k.Prefix, Kind: r.Kind.String(), NextHops: r.NextHops.All(),
			Programmed: true, State: status.Pending, Reason: reason.Held, Error: why}
		if r.Kind == intent.RouteLocal {
			row.Gateway = cmp.Or(ports[r.Gateway], r.Gateway.String())
		}
		out = append(out, row)
	}
	return out
}

func (n *node) routeTable(p intent.Path) *reconcile.Table[intent.RouteKey, intent.Route] {
	if p == intent.PathKernel {
		return tables.Of(n.tables, intent.KernelRoutes)
	}
	return tables.Of(n.tables, intent.Routes)
}

// carriedElsewhere are the VRFs whose packets another path than this one carries.
func (n *node) carriedElsewhere(p intent.Path) map[intent.VNI]bool {
	out := map[intent.VNI]bool{}
	vrfs, _ := tables.Of(n.tables, intent.VRFs).Rows()
	for vni := range vrfs {
		if now, ok := n.tables.Path(vni); ok && now != p {
			out[vni] = true
		}
	}
	return out
}

// routesFor are those of the path that carries a VRF.
func (n *node) routesFor(vni intent.VNI) *reconcile.Table[intent.RouteKey, intent.Route] {
	return n.routeTable(n.carrier(vni))
}

func (n *node) held(table reconcile.Stage) string {
	return "in the map and forwarded; " + cmp.Or(n.tables.Held(table), "kept for a while, or about to be removed")
}

func (n *node) portNames() map[intent.GatewayKey]string {
	wanted, _ := tables.Of(n.tables, intent.Gateways).Rows()
	out := make(map[intent.GatewayKey]string, len(wanted))
	for k, g := range wanted {
		out[k] = g.LogicalPort
	}
	return out
}
