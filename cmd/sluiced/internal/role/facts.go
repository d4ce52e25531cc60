package role

import (
	"net/netip"
	"strings"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/config"
)

// Take finds out what an event says of the node. Rows that are not all there say neither who the
// node is nor what it is for.
func (r *Role) Take(e ovn.Event) {
	if e.InSync.VSwitch && (e.InSync.SB || r.knownLocally()) {
		r.note(r.factsOf(e.Rows))
	}
}

// TakeLocal takes what the local database alone says, until the Southbound database has been read.
func (r *Role) TakeLocal(rows *ovn.Rows) {
	if r.knownLocally() {
		r.note(r.factsOf(rows))
	}
}

// knownLocally tells whether the local database and the configuration say who the node
// is and what it is for. With a part in the underlay they do: the node is started for
// that alone, since the route to the Southbound database may be one that it learns.
func (r *Role) knownLocally() bool { return r.cfg.Underlay.Used() }

func (r *Role) factsOf(rows *ovn.Rows) gateway.Facts {
	f := gateway.Facts{SystemID: r.cfg.OVN.SystemID, Integration: rows.IntegrationBridge()}
	if f.SystemID == "" {
		f.SystemID = rows.SystemID()
	}
	switch r.cfg.Roles {
	case config.RoleGateway:
		f.Gateway, f.Reason = true, "roles: gateway in the configuration"
	case config.RoleNone:
		f.Reason = "roles: none in the configuration"
	default:
		role := rows.Role()
		f.Gateway, f.Reason = role.Gateway, role.Reason
		if why, needed := r.steps.Needed(); !f.Gateway && needed {
			f.Gateway, f.Reason = true, why
		}
		if !f.Gateway && r.cfg.Underlay.Used() {
			f.Gateway, f.Reason = true, "underlay in the configuration"
		}
	}
	// ovn-encap-ip may be a list; the first address counts.
	first, _, _ := strings.Cut(rows.External("ovn-encap-ip"), ",")
	f.EncapIP, _ = netip.ParseAddr(first)
	return f
}

// note hands changed facts to Run. The reason alone restarts nothing, and a
// system-id that is away for a moment makes the node nobody else.
func (r *Role) note(f gateway.Facts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.SystemID == "" && r.latest.SystemID != "" {
		return
	}
	old := r.latest
	r.latest = f
	r.reg.SetCondition("role", f.SystemID != "", f.Role(), f.Reason)
	f.Reason, old.Reason = "", ""
	if f == old {
		return
	}
	select {
	case <-r.facts:
	default:
	}
	r.facts <- r.latest
}

// Facts are the latest ones.
func (r *Role) Facts() gateway.Facts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.latest
}
