package main

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/output"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func routeCommand(o *options) *cobra.Command {
	c := &cobra.Command{Use: "route", Short: "Destinations of the VRFs"}
	c.AddCommand(vrfList[[]status.Route]{
		use: "list", short: "Routes into OVN and to other nodes, and whether they are programmed and announced",
		ask: func(c *cobra.Command, vni intent.VNI) ([]status.Route, error) {
			return o.source(c.ErrOrStderr()).Routes(c.Context(), vni)
		},
		write: writeRoutes,
	}.command(o))
	return c
}

func writeRoutes(w io.Writer, routes []status.Route) error {
	t := output.Table{Header: []string{"VNI", "PREFIX", "KIND", "WHERE", "PROGRAMMED", "ANNOUNCED", "PROBLEM"}}
	for _, r := range routes {
		where := r.Gateway
		if len(r.NextHops) > 0 {
			hops := slices.Clone(r.NextHops)
			where = join(hops)
		}
		problem := r.Error
		if !strings.HasPrefix(r.Error, r.Reason) {
			problem = strings.TrimSuffix(r.Reason+": "+r.Error, ": ")
		}
		t.Add(r.VNI.String(), r.Prefix.String(), r.Kind, where, yes(r.Programmed), known(r.Announced, yes), problem)
	}
	return t.Write(w)
}
