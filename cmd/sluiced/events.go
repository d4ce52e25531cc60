package main

import (
	"net/netip"
	"strings"

	"github.com/ovn-sluice/sluice/controlplane/evpn"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/controlplane/rib"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
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

// takeOVN is called by the follower for every step of what OVN shows.
func (d *daemon) takeOVN(e ovn.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	diff := d.translator.Step(e.Rows, e.Dirty)
	d.inSyncNow.Store(e.InSync)
	if d.node != nil {
		d.node.patch(diff)
	}
	d.reportObjects()
	d.noteFacts(d.factsOf(e.Rows))
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
	f.encapIP, _ = netip.ParseAddr(firstOf(rows.External("ovn-encap-ip")))
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

func roleWord(f nodeFacts) string {
	switch {
	case f.systemID == "":
		return "no-system-id"
	case f.gateway:
		return "gateway"
	}
	return "none"
}

// patch hands a translation step to the tables as one change.
func (n *node) patch(d evpn.Difference) {
	t := n.tables
	if d.Empty() {
		t.pipeline.Kick() // rows may be held for an in-sync that has just come
		return
	}
	t.pipeline.Update(func() {
		apply(t.bridges, d.Bridges)
		apply(t.vrfs, d.VRFs)
		apply(t.policies, d.Policies)
		apply(t.gateways, d.Gateways)
		apply(t.served, d.Served)
		t.routes.Update(n.rib.Update(rib.OVN, d.Routes.Set, d.Routes.Delete))
		apply(t.steering, d.Steering)
		apply(t.announcements, d.Announcements)
	})
}

func apply[K, V comparable](t *reconcile.Table[K, V], d evpn.Delta[K, V]) { t.Update(d.Set, d.Delete) }

// reportObjects shows what is wrong, or held back, in what OVN asks for. What is
// said twice of one object is one report; errors come first.
func (d *daemon) reportObjects() {
	type name struct{ kind, key string }
	var order []name
	reports := map[name]status.Object{}
	add := func(o status.Object) {
		k := name{o.Kind, o.Key}
		first, ok := reports[k]
		if !ok {
			order = append(order, k)
			reports[k] = o
			return
		}
		if !strings.Contains(first.Error, o.Error) {
			first.Error += "; " + o.Error
			reports[k] = first
		}
	}
	for _, e := range d.translator.Errors() {
		add(status.Object{Kind: e.Kind, Key: e.Name, State: status.Error, Reason: e.Reason, Error: e.Err.Error()})
	}
	for _, n := range d.translator.Notes() {
		add(status.Object{Kind: n.Kind, Key: n.Name, State: noteState(n), Reason: n.Reason, Error: n.Detail})
	}
	objects := make([]status.Object, 0, len(order))
	for _, k := range order {
		objects = append(objects, reports[k])
	}
	d.reg.Reporter("evpn").Replace(objects)
}

// noteState: an address that is kept back is withheld; a fact that cannot be
// seen is a warning, since the object is served all the same.
func noteState(n evpn.Note) status.State {
	if n.Reason == "nat-unknown" {
		return status.Warning
	}
	return status.Withheld
}

func firstOf(list string) string {
	for i, c := range list {
		if c == ',' {
			return list[:i]
		}
	}
	return list
}
