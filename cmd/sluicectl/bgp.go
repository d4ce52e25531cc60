package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/output"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func bgpCommand(o *options) *cobra.Command {
	c := &cobra.Command{Use: "bgp", Short: "The BGP speaker"}
	c.AddCommand(question[status.BGP]{
		use: "neighbors", short: "BGP sessions, with the numbers of their routes", ask: source.BGP, write: writeNeighbors,
	}.command(o), vrfList[[]status.BGPRoute]{
		use: "routes", short: "EVPN Type-5 routes, sent and received, and why a received one was rejected",
		long: `EVPN Type-5 routes, sent and received, and why a received one was rejected.

With --vrf: routes that the VRF announces, routes with a route target that it imports, also rejected
ones, and rejected routes with its VNI as label.`,
		ask: func(c *cobra.Command, vni intent.VNI) ([]status.BGPRoute, error) {
			return o.source(c.ErrOrStderr()).BGPRoutes(c.Context(), vni)
		},
		write: writeBGPRoutes,
	}.command(o))
	return c
}

func writeNeighbors(w io.Writer, b status.BGP) error {
	output.Printf(w, "AS %d, router id %s\n", b.ASN, b.RouterID)
	if b.Dials {
		output.Printf(w, "The BGP server dials: sessions start one to two seconds later.\n")
	}
	output.Printf(w, "\n")
	t := output.Table{Header: []string{"NEIGHBOR", "AS", "STATE", "SINCE", "FLAPS", "BFD", "RECEIVED", "ACCEPTED", "SENT", "UNICAST", "REJECTED", "END OF RIB", "LAST ERROR"}}
	for _, n := range b.Neighbors {
		name := n.Address.String()
		if !n.Address.IsValid() {
			name = n.Interface
		}
		if n.Description != "" {
			name += " (" + n.Description + ")"
		}
		state := n.State
		if !n.Retry.IsZero() {
			state += ", again at " + n.Retry.Format(time.TimeOnly)
		}
		t.Add(name, fmt.Sprint(n.ASN), state, age(n.Since), fmt.Sprint(n.Flaps), path(n.BFD), fmt.Sprint(n.Received), fmt.Sprint(n.Accepted),
			fmt.Sprint(n.Sent), unicast(n), rejected(n), yes(n.EndOfRIB), n.LastError)
	}
	return t.Write(w)
}

// rejected are the routes of a neighbour that are not used, by reason, of all families.
func rejected(n status.Neighbor) string {
	var words []string
	for _, why := range slices.Sorted(maps.Keys(n.Rejected)) {
		words = append(words, fmt.Sprintf("%d %s", n.Rejected[why], why))
	}
	if len(words) == 0 {
		return "-"
	}
	return strings.Join(words, ", ")
}

// unicast is what of plain unicast goes over a session that is to have it; the other
// columns are of EVPN.
func unicast(n status.Neighbor) string {
	if !slices.Contains(n.Families, "ipv4") && !slices.Contains(n.Families, "ipv6") {
		return "-"
	}
	return fmt.Sprintf("%d in, %d out", n.UnicastReceived, n.UnicastSent)
}

// path is what BFD says of the path to a neighbour, and what is wrong with it.
func path(b *status.BFD) string {
	switch {
	case b == nil:
		return "-"
	case b.Problem != "":
		return b.Path + ": " + b.Problem
	case b.Path == "lost" && b.Diagnostic != "":
		return b.Path + ": " + b.Diagnostic
	}
	return b.Path
}

func writeBGPRoutes(w io.Writer, routes []status.BGPRoute) error {
	t := output.Table{Header: []string{"DIR", "RD", "PREFIX", "LABEL", "NEXT HOP", "ROUTER MAC", "ROUTE TARGETS", "FROM", "VRFS", "NOTE"}}
	for _, r := range routes {
		from := ""
		if r.Neighbor.IsValid() {
			from = r.Neighbor.String()
		}
		note := r.Rejected
		if r.Stale {
			note = "stale"
		}
		t.Add(r.Direction, r.RD, r.Prefix.String(), r.Label.String(), r.NextHop.String(), r.RouterMAC.String(),
			strings.Join(r.Targets, " "), from, join(r.VRFs), note)
	}
	return t.Write(w)
}
