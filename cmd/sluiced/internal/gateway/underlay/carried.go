package underlay

import (
	"context"
	"log/slog"
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/reconcile"

	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// HasRoutes tells whether the routes to the other nodes outlasted the last process, as far
// as they were its own. Without any the node has forwarded nothing, whatever is pinned,
// and may not reach OVN before it has learned them anew: it does not restart gracefully
// (RFC 4724 section 4.1), and waits for nothing before its sessions start. pinned lists the VTEPs.
func HasRoutes(ctx context.Context, c config.Underlay, pinned reconcile.Lister[netip.Addr, intent.VTEP], log *slog.Logger) bool {
	if !c.Install.Enabled {
		return true
	}
	routes, err := kernel.NewUnderlayRoutes(netns.Namespace{}).List(ctx)
	if err != nil || len(routes) > 0 {
		return true
	}
	vteps, err := pinned.List(ctx)
	if err != nil || len(vteps) == 0 {
		return true
	}
	facts := link.New(netns.Namespace{})
	for a := range vteps {
		if leadsThere(facts, a) {
			return true
		}
	}
	log.Warn("no route to a VTEP is left; BGP does not announce preserved forwarding", "vteps", len(vteps))
	return false
}

// leadsThere tells whether there is a route to an address that is no default route,
// as that of a management network is.
func leadsThere(facts *link.Facts, a netip.Addr) bool {
	byDefault, err := facts.ByDefault(a)
	return err == nil && !byDefault
}
