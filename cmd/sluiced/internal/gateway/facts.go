package gateway

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/plane"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// Facts are what a gateway is started with; one whose facts change is
// started anew, while what it pinned goes on forwarding.
type Facts struct {
	// Gateway: the node is to be one, for a Reason.
	Gateway     bool
	Reason      string
	SystemID    string
	EncapIP     netip.Addr
	Integration string // the integration bridge
}

// Identity is what the facts alone say of the node.
func (f Facts) Identity() status.Identity {
	return status.Identity{Chassis: f.SystemID, Role: f.Role(), RoleReason: f.Reason}
}

// Role is the word for it.
func (f Facts) Role() string {
	switch {
	case f.SystemID == "":
		return reason.NoSystemID
	case f.Gateway:
		return reason.RoleGateway
	}
	return reason.RoleNone
}

// awaits says what a component waits for whose gateway has ended, and is to start with the facts.
func (f Facts) awaits() string {
	if f.SystemID == "" || !f.Gateway {
		return "the node is no longer a gateway; sluiced removes what it has programmed once Southbound and the local database are in sync"
	}
	return fmt.Sprintf("the gateway restarts as chassis %q; it waits until the programs with this chassis' router MAC and VTEP are loaded, and earlier programs forward meanwhile", f.SystemID)
}

// awaitFacts waits for facts that make the node another one, or none. Facts that
// leave it the node that it is are taken in while it runs.
func (g *Gateway) awaitFacts(ctx context.Context, facts <-chan Facts) (next Facts, changed bool) {
	next = g.facts
	said := ""
	for {
		same, err := g.stays(next)
		switch {
		case err != nil && err.Error() == said:
		case err != nil:
			// Who it would be is not known: it goes on as who it is.
			said = err.Error()
			g.log.Warn("facts of the node changed, and its VTEP cannot be found", "chassis", next.SystemID, "error", err)
		case !same:
			g.log.Info("facts of the node changed", "chassis", next.SystemID, "gateway", next.Gateway)
			return next, true
		default:
			g.takeFacts(next)
		}
		var retry <-chan time.Time
		if err != nil {
			retry = time.After(plane.Retry)
		}
		select {
		case <-ctx.Done():
			return g.facts, false
		case <-g.hosts:
		case next = <-facts:
		case <-retry:
		}
	}
}

// stays tells whether the node is the same one with other facts.
func (g *Gateway) stays(next Facts) (bool, error) {
	if !next.Gateway || next.SystemID == "" {
		return false, nil
	}
	id, err := g.identify(next)
	return g.id.Same(id), err
}

// identify finds out who the node at work is with other facts, or on a host that has changed.
func (g *Gateway) identify(next Facts) (settings.Identity, error) {
	if g.cfg.Fabric.VTEP.IsValid() {
		return identify(g.cfg, next)
	}
	facts := link.New(netns.Namespace{})
	has, err := facts.Takes(g.id.VTEP)
	if err != nil {
		return settings.Identity{}, err
	}
	addresses, err := facts.Addresses()
	if err != nil {
		return settings.Identity{}, err
	}
	vtep, choose := keptVTEP(g.id.VTEP, g.facts, next, has, addresses)
	if choose {
		return identify(g.cfg, next)
	}
	return settings.NewIdentity(g.cfg, next.SystemID, vtep), nil
}

// takeFacts follows facts that change nothing of who the node is.
func (g *Gateway) takeFacts(next Facts) {
	if next.Integration != g.facts.Integration {
		g.sw.SetIntegration(next.Integration)
		g.tables.RelistSwitch()
	}
	g.facts = next
}
