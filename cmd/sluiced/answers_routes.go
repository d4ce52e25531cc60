package main

import (
	"cmp"
	"slices"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

func (n *node) routes(only intent.VNI) []status.Route {
	wanted, actual := n.tables.Routes.Rows()
	announced, _ := n.tables.Announcements.Rows()
	ports := n.portNames()
	var out []status.Route
	for k, r := range wanted {
		if only != 0 && k.VNI != only {
			continue
		}
		row := status.Route{VNI: k.VNI, Prefix: k.Prefix, Kind: r.Kind.String(), NextHops: r.NextHops.All(), Programmed: actual[k] == r, State: status.OK}
		if r.Kind == intent.RouteLocal {
			row.Gateway = cmp.Or(ports[r.Gateway], r.Gateway.String())
		}
		if _, ok := announced[k]; ok {
			row.Announced, _ = n.tables.Announcements.State(k)
		}
		if !row.Programmed {
			row.State = status.Pending
			if _, err := n.tables.Routes.State(k); err != nil {
				row.State, row.Reason, row.Error = status.Error, tables.ReasonOf(err), err.Error()
			}
		}
		out = append(out, row)
	}
	slices.SortFunc(out, status.Route.Compare)
	return out
}

func (n *node) portNames() map[intent.GatewayKey]string {
	wanted, _ := n.tables.Gateways.Rows()
	out := make(map[intent.GatewayKey]string, len(wanted))
	for k, g := range wanted {
		out[k] = g.LogicalPort
	}
	return out
}
