package main

import (
	"context"
	"strings"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func (n *node) bgp(ctx context.Context) (status.BGP, error) {
	s, err := n.speaker.Status(ctx)
	if err != nil {
		return status.BGP{}, err
	}
	out := status.BGP{ASN: s.ASN, RouterID: s.RouterID, Neighbors: []status.Neighbor{}}
	paths := n.pathStatus()
	for _, b := range s.Neighbors {
		out.Neighbors = append(out.Neighbors, neighborStatus(b, paths[b.Address]))
	}
	return out, nil
}

// neighborStatus is a neighbour as it is reported; path is nil where there is no BFD.
func neighborStatus(b bgp.NeighborStatus, path *status.BFD) status.Neighbor {
	return status.Neighbor{
		Interface: b.Interface, Families: strings.Fields(b.Families.String()), UnicastReceived: b.UnicastReceived, UnicastSent: b.UnicastSent,
		Address: b.Address, Description: b.Description, ASN: b.ASN, State: b.State, Since: b.Since, Flaps: b.Flaps,
		Received: b.Received, Accepted: accepted(b), Sent: b.Sent, EndOfRIB: b.EndOfRIB, Restarting: b.PeerRestarting,
		MessagesIn: b.MessagesIn, MessagesOut: b.MessagesOut, LastError: b.LastError, Retry: b.Retry, IgnoredUpdates: b.Ignored, BFD: path,
	}
}

// accepted counts the routes of a neighbour that entered a VRF.
func accepted(b bgp.NeighborStatus) int {
	count := b.Received
	for _, rejected := range b.Rejected {
		count -= rejected
	}
	return count
}

func (n *node) bgpRoutes(ctx context.Context) ([]status.BGPRoute, error) {
	routes, err := n.speaker.Routes(ctx)
	out := make([]status.BGPRoute, 0, len(routes))
	for _, r := range routes {
		out = append(out, r.Status())
	}
	return out, err
}
