package main

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/plane"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reason"
)

// nodeFacts are what a node is started with; a node whose facts change is
// started anew, while what it pinned goes on forwarding.
type nodeFacts struct {
	gateway     bool
	reason      string
	systemID    string
	encapIP     netip.Addr
	integration string
}

// takeLocal is called by the follower with what the local database alone says, until
// the Southbound database has been read.
func (d *daemon) takeLocal(rows *ovn.Rows) {
	d.taps.LookFor(rows)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.knownLocally() {
		d.noteFacts(d.factsOf(rows))
	}
}

// knownLocally tells whether the local database and the configuration say who the node
// is and what it is for. With a part in the underlay they do: the node is started for
// that alone, since the way to the Southbound database may be one that it learns.
func (d *daemon) knownLocally() bool { return d.cfg.Underlay.Used() }

// factsOf finds them. d.mu is held.
func (d *daemon) factsOf(rows *ovn.Rows) nodeFacts {
	f := nodeFacts{systemID: d.cfg.OVN.SystemID, integration: rows.IntegrationBridge()}
	if f.systemID == "" {
		f.systemID = rows.SystemID()
	}
	switch d.cfg.Roles {
	case config.RoleGateway:
		f.gateway, f.reason = true, "roles: gateway in the configuration"
	case config.RoleNone:
		f.reason = "roles: none in the configuration"
	default:
		r := rows.Role()
		f.gateway, f.reason = r.Gateway, r.Reason
		if why, needed := d.steps.Needed(); !f.gateway && needed {
			f.gateway, f.reason = true, why
		}
		if !f.gateway && d.cfg.Underlay.Used() {
			f.gateway, f.reason = true, "underlay in the configuration"
		}
	}
	// ovn-encap-ip may be a list; the first address counts.
	first, _, _ := strings.Cut(rows.External("ovn-encap-ip"), ",")
	f.encapIP, _ = netip.ParseAddr(first)
	return f
}

// noteFacts hands changed facts to runNodes. The reason alone restarts nothing, and a
// system-id that is away for a moment makes the node nobody else. d.mu is held.
func (d *daemon) noteFacts(f nodeFacts) {
	if f.systemID == "" && d.latest.systemID != "" {
		return
	}
	old := d.latest
	d.latest = f
	d.reg.SetCondition("role", f.systemID != "", roleWord(f), f.reason)
	f.reason, old.reason = "", ""
	if f == old {
		return
	}
	select {
	case <-d.facts:
	default:
	}
	d.facts <- d.latest
}

// awaitFacts waits for facts that make the node another one, or none. Facts that
// leave it the node that it is are taken in while it runs.
func (n *node) awaitFacts(ctx context.Context) (next nodeFacts, changed bool) {
	next = n.facts
	said := ""
	for {
		same, err := n.stays(next)
		switch {
		case err != nil && err.Error() == said:
		case err != nil:
			// Who it would be is not known: it goes on as who it is.
			said = err.Error()
			n.d.log.Warn("facts of the node changed, and its VTEP cannot be found", "chassis", next.systemID, "error", err)
		case !same:
			n.d.log.Info("facts of the node changed", "chassis", next.systemID, "gateway", next.gateway)
			return next, true
		default:
			n.takeFacts(next)
		}
		var retry <-chan time.Time
		if err != nil {
			retry = time.After(plane.Retry)
		}
		select {
		case <-ctx.Done():
			return n.facts, false
		case <-n.hosts:
		case next = <-n.d.facts:
		case <-retry:
		}
	}
}

// stays tells whether the node is the same one with other facts.
func (n *node) stays(next nodeFacts) (bool, error) {
	if !next.gateway || next.systemID == "" {
		return false, nil
	}
	id, err := n.identify(next)
	return n.id.Same(id), err
}

// identify finds out who the node at work is with other facts, or on a host that has changed.
func (n *node) identify(next nodeFacts) (settings.Identity, error) {
	if n.d.cfg.Fabric.VTEP.IsValid() {
		return n.d.identify(next)
	}
	facts := link.New(netns.Namespace{})
	has, err := facts.Takes(n.id.VTEP)
	if err != nil {
		return settings.Identity{}, err
	}
	addresses, err := facts.Addresses()
	if err != nil {
		return settings.Identity{}, err
	}
	vtep, choose := keptVTEP(n.id.VTEP, n.facts, next, has, addresses)
	if choose {
		return n.d.identify(next)
	}
	return n.d.identity(next, vtep), nil
}

// takeFacts follows facts that change nothing of who the node is.
func (n *node) takeFacts(next nodeFacts) {
	if next.integration != n.facts.integration {
		n.d.ovs.SetIntegration(next.integration)
		n.relistSwitch()
	}
	n.facts = next
}

func roleWord(f nodeFacts) string {
	switch {
	case f.systemID == "":
		return reason.NoSystemID
	case f.gateway:
		return reason.RoleGateway
	}
	return reason.RoleNone
}
