package dryrun

import (
	"context"
	"maps"
	"slices"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway/underlay"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// planUnderlay is the node's own part in the fabric: what it would announce, and of
// the routes that are there those that it would take off. Which it would install
// only BGP could tell.
func (n node) planUnderlay(ctx context.Context, p *status.Plan) error {
	c := n.cfg.Underlay
	drivers := tables.Drivers{}
	tables.Drive(drivers, intent.UnderlayRoutes, reconcile.ReadOnly(kernel.NewUnderlayRoutes(netns.Namespace{})))
	u := tables.NewUnderlay(drivers, tables.UnderlaySources{
		BGP: func() bool { return !c.Install.Enabled }, Fabric: func() error { return nil },
	}, tables.Options{Status: n.reg, Log: n.log, Dry: true})
	changes, err := u.Pipeline.Compare(ctx)
	rows := 0
	for _, change := range changes {
		if change.Held {
			rows++
			continue
		}
		p.Changes = append(p.Changes, tables.ChangeOf(change))
	}
	if rows > 0 {
		p.Unknown = append(p.Unknown, unknownToBGP(intent.UnderlayRoutes.Name, rows))
	}
	p.UnderlayAnnouncements = slices.SortedFunc(maps.Keys(settings.UnderlayAnnouncements(c.Announce, n.Identity().VTEP)), underlay.ComparePrefixes)
	return err
}

func unknownToBGP(table string, rows int) status.UnknownRows {
	return status.UnknownRows{Table: table, Rows: rows, Why: "imported by BGP; whether they are wanted still is not known in a dry run"}
}
