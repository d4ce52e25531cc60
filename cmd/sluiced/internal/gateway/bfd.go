package gateway

import (
	"cmp"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/controlplane/bfd"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// newBFD makes BFD with the neighbours that have it enabled.
func (g *Gateway) newBFD() (err error) {
	g.bfd, err = bfd.New(bfd.Config{Peers: settings.BFDPeers(g.cfg), Changed: g.speaker.PathChanged}, g.log)
	if err == nil && !g.cfg.BGP.GracefulRestart.Enabled {
		g.bfd.TellEnd()
	}
	return err
}

// lostPaths are the neighbours that BFD does not reach, as far as that is wrong: a
// path that was up, or something that is wrong here.
func lostPaths(s bfd.Status) []status.Object {
	var out []status.Object
	for _, p := range s.Sessions {
		if p.Path == bfd.PathLost || p.Path != bfd.PathUp && p.Problem != "" {
			out = append(out, status.Object{Kind: "neighbor", Key: p.Neighbor.String(), State: status.Warning, Reason: reason.BFDDown,
				Error: "BFD is not up: " + cmp.Or(p.Problem, p.Diagnostic.String(), "no packet of the neighbour arrives")})
		}
	}
	return out
}
