package report

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway"
	"github.com/ovn-sluice/sluice/controlplane/bfd"
	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/metrics/nodemetrics"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// BGP is the answer to "sluicectl bgp neighbors".
func (r *Report) BGP(ctx context.Context) (status.BGP, error) {
	return ofNode(r, status.BGP{ASN: r.cfg.BGP.ASN, Neighbors: []status.Neighbor{}}, func(n node) (status.BGP, error) { return n.bgp(ctx) })
}

// BGPRoutes are the routes that BGP has of a VRF, or all for VNI 0.
func (r *Report) BGPRoutes(ctx context.Context, vni intent.VNI) ([]status.BGPRoute, error) {
	return ofNode(r, []status.BGPRoute{}, func(n node) ([]status.BGPRoute, error) { return n.bgpRoutes(ctx, vni) })
}

func (n node) bgp(ctx context.Context) (status.BGP, error) {
	s, err := n.Speaker().Status(ctx)
	if err != nil {
		return status.BGP{}, err
	}
	out := status.BGP{ASN: s.ASN, RouterID: s.RouterID, Dials: s.Dials, Neighbors: []status.Neighbor{}, Rejected: map[string]uint64{}}
	paths := n.bfd().Sessions
	for _, b := range s.Neighbors {
		out.Neighbors = append(out.Neighbors, neighborStatus(b, paths[b.Address]))
		for reason, total := range b.RejectedTotal {
			out.Rejected[string(reason)] += total
		}
	}
	return out, nil
}

// neighborStatus is a neighbour as it is reported; path is nil where there is no BFD.
func neighborStatus(b bgp.NeighborStatus, path *status.BFD) status.Neighbor {
	return status.Neighbor{
		Interface: b.Interface, Families: strings.Fields(b.Families.String()), UnicastReceived: b.UnicastReceived, UnicastSent: b.UnicastSent,
		Address: b.Address, Description: b.Description, ASN: b.ASN, State: b.State, Since: b.Since, Up: gateway.Established(b), Flaps: b.Flaps,
		Received: b.Received, Accepted: accepted(b), Sent: b.Sent, Rejected: rejected(b), EndOfRIB: b.EndOfRIB, Restarting: b.PeerRestarting,
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

// rejected counts the routes of a neighbour that are not used, by reason.
func rejected(b bgp.NeighborStatus) map[string]int {
	out := map[string]int{}
	for _, family := range []map[bgp.Reason]int{b.Rejected, b.UnicastRejected} {
		for reason, n := range family {
			if n > 0 {
				out[string(reason)] += n
			}
		}
	}
	return out
}

func (n node) bgpRoutes(ctx context.Context, vni intent.VNI) ([]status.BGPRoute, error) {
	if vni == intent.DefaultVRF {
		return nil, fmt.Errorf("%w: VRF %s has no EVPN routes; 'sluicectl route list --vrf %s' shows what it exposes", admin.ErrBadRequest, vni, vni)
	}
	routes, err := n.Speaker().Routes(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]status.BGPRoute, 0, len(routes))
	for _, r := range routes {
		if vni == 0 || concerns(r, vni) {
			out = append(out, r.Status())
		}
	}
	if vni != 0 && len(out) == 0 {
		return out, lacks(n.Gateway, vni)
	}
	return out, nil
}

// concerns tells whether a VRF announces a route or imports one of its route targets. A route that no
// VRF has may be meant for the VRF whose VNI is its label.
func concerns(r bgp.RouteInfo, vni intent.VNI) bool {
	return slices.Contains(r.Importers, vni) || r.Rejected != "" && r.Label == vni
}

// bfd is BFD by neighbour.
func (n node) bfd() nodemetrics.BFD {
	s := n.BFD()
	out := nodemetrics.BFD{Sessions: map[netip.Addr]*status.BFD{}, Drops: map[string]uint64{}}
	for _, s := range s.Sessions {
		out.Sessions[s.Neighbor] = &status.BFD{
			Path: s.Path.String(), Up: s.Path == bfd.PathUp, State: s.State.String(), RemoteState: s.RemoteState.String(),
			Diagnostic: s.Diagnostic.String(), RemoteDiagnostic: s.RemoteDiagnostic.String(), Since: s.Since, Flaps: s.Flaps,
			Multihop: s.Multihop, IntervalUs: uint64(s.TxInterval.Microseconds()), DetectionUs: uint64(s.Detection.Microseconds()),
			Discriminator: s.Local, RemoteDiscriminator: s.Remote, PacketsIn: s.In, PacketsOut: s.Out, Problem: s.Problem,
		}
	}
	for why, packets := range s.Drops {
		out.Drops[string(why)] = packets
	}
	return out
}
