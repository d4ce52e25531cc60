package main

import (
	"cmp"
	"net/netip"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/controlplane/bfd"
	"github.com/ovn-sluice/sluice/pkg/metrics/nodemetrics"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// newPaths makes BFD with the neighbours that have it enabled.
func (n *node) newPaths() (err error) {
	n.paths, err = bfd.New(bfd.Config{Peers: settings.BFDPeers(n.d.cfg), Changed: n.speaker.PathChanged}, n.d.log)
	if err == nil && !n.d.cfg.BGP.GracefulRestart.Enabled {
		n.paths.TellEnd()
	}
	return err
}

// pathStatus is BFD by neighbour.
func (n *node) pathStatus() map[netip.Addr]*status.BFD {
	out := map[netip.Addr]*status.BFD{}
	for _, s := range n.paths.Status().Sessions {
		out[s.Neighbor] = &status.BFD{
			Path: s.Path.String(), State: s.State.String(), RemoteState: s.RemoteState.String(),
			Diagnostic: s.Diagnostic.String(), RemoteDiagnostic: s.RemoteDiagnostic.String(), Since: s.Since, Flaps: s.Flaps,
			Multihop: s.Multihop, IntervalUs: uint64(s.TxInterval.Microseconds()), DetectionUs: uint64(s.Detection.Microseconds()),
			Discriminator: s.Local, RemoteDiscriminator: s.Remote, PacketsIn: s.In, PacketsOut: s.Out, Problem: s.Problem,
		}
	}
	return out
}

// lostPaths are the neighbours that BFD does not reach, as far as that is wrong: a
// path that was up, or something that is in the way here.
func lostPaths(s bfd.Status) []status.Object {
	var out []status.Object
	for _, p := range s.Sessions {
		if p.Path == bfd.PathLost || p.Path != bfd.PathUp && p.Problem != "" {
			out = append(out, status.Object{Kind: "neighbor", Key: p.Neighbor.String(), State: status.Warning, Reason: reason.BFDDown,
				Error: "BFD is not up: " + cmp.Or(p.Problem, p.Diagnostic.String(), "the neighbour is not heard")})
		}
	}
	return out
}

func (n *node) bfdMetrics() nodemetrics.BFD {
	s := n.paths.Status()
	out := nodemetrics.BFD{Drops: map[string]uint64{}}
	for _, p := range s.Sessions {
		out.Sessions = append(out.Sessions, nodemetrics.BFDSession{Neighbor: p.Neighbor, Up: p.Path == bfd.PathUp, Flaps: p.Flaps, In: p.In, Out: p.Out})
	}
	for why, packets := range s.Drops {
		out.Drops[string(why)] = packets
	}
	return out
}
