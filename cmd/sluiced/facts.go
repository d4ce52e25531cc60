package main

import (
	"net/netip"
	"strings"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/config"
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
	}
	// ovn-encap-ip may be a list; the first address counts.
	first, _, _ := strings.Cut(rows.External("ovn-encap-ip"), ",")
	f.encapIP, _ = netip.ParseAddr(first)
	return f
}

// noteFacts hands changed facts to runNodes. The reason alone restarts nothing.
func (d *daemon) noteFacts(f nodeFacts) {
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

// roleGateway is the word for a node that forwards.
const roleGateway = "gateway"

func roleWord(f nodeFacts) string {
	switch {
	case f.systemID == "":
		return "no-system-id"
	case f.gateway:
		return roleGateway
	}
	return "none"
}
