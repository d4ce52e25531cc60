package report

import (
	"context"
	"maps"
	"slices"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway/underlay"
	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// Underlay is the answer to "sluicectl underlay".
func (r *Report) Underlay(ctx context.Context) (status.Underlay, error) {
	none := status.Underlay{Announcements: []status.UnderlayAnnouncement{}, Routes: []status.UnderlayRoute{}}
	return ofNode(r, none, func(n node) (status.Underlay, error) { return n.underlayStatus(ctx) })
}

func (n node) underlayStatus(ctx context.Context) (status.Underlay, error) {
	sessions, err := n.Speaker().Status(ctx)
	if err != nil {
		return status.Underlay{}, err
	}
	_, inSync := n.Speaker().Unicast()
	out := status.Underlay{Install: n.cfg.Underlay.Install.Enabled, InSync: inSync, Announcements: []status.UnderlayAnnouncement{}, Routes: n.Underlay().Routes()}
	wanted, _ := tables.Of(n.Underlay().Tables(), intent.UnderlayAnnouncements).Rows()
	for _, prefix := range slices.SortedFunc(maps.Keys(wanted), underlay.ComparePrefixes) {
		a := status.UnderlayAnnouncement{Prefix: prefix, VTEP: wanted[prefix].VTEP}
		var err error
		if a.Announced, err = tables.Of(n.Underlay().Tables(), intent.UnderlayAnnouncements).State(prefix); err != nil {
			a.Error = err.Error()
		}
		if family := bgp.FamilyOf(intent.DefaultVRF, prefix); a.Announced && !sessions.Carries(family) {
			a.Announced, a.Error = false, "no neighbour with a session takes routes of family "+family.String()
		}
		out.Announcements = append(out.Announcements, a)
	}
	return out, nil
}

// underlayRoutes are those of Underlay, of a node that installs them.
func (n node) underlayRoutes() ([]status.UnderlayRoute, error) {
	if !n.cfg.Underlay.Install.Enabled {
		return nil, nil
	}
	return n.Underlay().Routes(), nil
}
