package report

import (
	"cmp"
	"context"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// Routes are those of a VRF, or of all for VNI 0.
func (r *Report) Routes(ctx context.Context, vni intent.VNI) ([]status.Route, error) {
	return ofNode(r, []status.Route{}, func(n node) ([]status.Route, error) { return n.routesOf(ctx, vni) })
}

// routesOf are the routes of a VRF that there is, or of all for VNI 0.
func (n node) routesOf(ctx context.Context, vni intent.VNI) ([]status.Route, error) {
	routes, err := n.routesAndSessions(ctx, vni)
	if err != nil {
		return nil, err
	}
	if vni == 0 || len(routes) > 0 {
		return routes, nil
	}
	return routes, lacks(n.Gateway, vni)
}

// routesAndSessions are the routes, announced only where a neighbour takes them.
func (n node) routesAndSessions(ctx context.Context, only intent.VNI) ([]status.Route, error) {
	s, err := n.Speaker().Status(ctx)
	if err != nil {
		return nil, err
	}
	routes := n.routes(only)
	unannounced(routes, func(r status.Route) bool { return s.Carries(bgp.FamilyOf(r.VNI, r.Prefix)) })
	return routes, nil
}

// unannounced has the routes wait that no neighbour takes.
func unannounced(routes []status.Route, taken func(status.Route) bool) {
	for i := range routes {
		r := &routes[i]
		if r.Announced == nil || !*r.Announced || taken(*r) {
			continue
		}
		r.Announced = status.Known(false)
		if r.State == status.OK {
			r.State, r.Reason, r.Error = status.Pending, reason.Waiting, "waiting for a BGP session with the address family"
		}
	}
}

// routes are those of the path that carries each VRF. While it changes, the other
// path has them too.
func (n node) routes(only intent.VNI) []status.Route {
	announced, _ := tables.Of(n.Tables(), intent.Announcements).Rows()
	ports := n.PortNames()
	out := []status.Route{}
	for _, p := range []intent.Path{intent.PathEBPF, intent.PathKernel} {
		out = append(out, n.routesOn(p, only, announced, ports)...)
	}
	slices.SortFunc(out, status.Route.Compare)
	return out
}

func (n node) routesOn(p intent.Path, only intent.VNI, announced map[intent.RouteKey]intent.Announcement, ports map[intent.GatewayKey]string) []status.Route {
	table := n.Tables().RoutesOn(p)
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
			told, err := tables.Of(n.Tables(), intent.Announcements).State(k)
			row.Announced = &told
			if !told && row.Programmed {
				row.State, row.Reason, row.Error = n.UnannouncedState(k, err)
			}
		}
		out = append(out, row)
	}
	why := n.Tables().HeldText(table)
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

// carriedElsewhere are the VRFs whose packets another path than this one carries.
func (n node) carriedElsewhere(p intent.Path) map[intent.VNI]bool {
	out := map[intent.VNI]bool{}
	vrfs, _ := tables.Of(n.Tables(), intent.VRFs).Rows()
	for vni := range vrfs {
		if now, ok := n.Tables().Path(vni); ok && now != p {
			out[vni] = true
		}
	}
	return out
}
