// Package health reports the databases, settings that an operator has to know, overdue rows, and
// lost pins. All other components report themselves.
package health

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// healthInterval is how often it is looked at what makes no event, as an attempt to connect
// that failed.
const healthInterval = time.Second

// Databases keeps the conditions of the databases up to date.
type Databases struct {
	cfg     *config.Config
	status  func() ovn.Status
	publish func() error
	reg     *status.Registry
	changed loop.Signal
	last    ovn.InSync // of a turn: with the last event
}

// NewDatabases makes it. publish tells the other nodes of this one, once Southbound is in sync.
func NewDatabases(cfg *config.Config, status func() ovn.Status, publish func() error, reg *status.Registry) *Databases {
	return &Databases{cfg: cfg, status: status, publish: publish, reg: reg, changed: loop.NewSignal()}
}

// Take has the conditions looked at at once after an event that changes what is in sync.
func (d *Databases) Take(e ovn.Event) {
	if d.last != e.InSync {
		d.last = e.InSync
		d.changed.Send()
	}
}

// Run keeps the conditions until ctx ends.
func (d *Databases) Run(ctx context.Context) error {
	published := false
	settled := settledConditions{}
	return loop.Every(ctx, healthInterval, d.changed, func() {
		s := d.status()
		conditions := databaseConditions(s)
		settled.keep(conditions, time.Now())
		d.reg.Await("role", roleAwaits(s))
		for name, c := range conditions {
			d.reg.SetCondition(name, c.ready, c.reason, c.detail)
		}
		if s.InSync.SB {
			d.reg.Reporter(settingReports).Replace(doubtful(d.cfg, s))
		}
		if c, known := ownRows(d.cfg, s); known && (published || !c.ready) {
			d.reg.SetCondition("chassis-private", c.ready, c.reason, c.detail)
		}
		if !published && s.InSync.SB {
			published = d.publish() == nil
		}
	})
}

// roleAwaits is what says who the node is and what it is for.
func roleAwaits(s ovn.Status) string {
	if s.InSync.VSwitch && s.SystemID == "" {
		return "external_ids:system-id in Open_vSwitch is empty: install OVN on the node, or set ovn.systemID"
	}
	return "waits for the components vswitchd and sb, which say what the node is for"
}

// ownRows is the condition of the node's rows in Southbound. It is not known while Southbound is
// not in sync, or a write is on its way.
func ownRows(c *config.Config, s ovn.Status) (out databaseCondition, known bool) {
	switch {
	case len(s.Unregistered) > 0:
		return databaseCondition{reason: reason.NotRegistered, detail: unregistered(c, s)}, true
	case s.Publish != nil:
		return databaseCondition{reason: reason.Refused, detail: s.Publish.Error()}, true
	}
	return databaseCondition{ready: true, reason: reason.Published}, s.Published
}

// unregistered says which name Southbound does not have, and what may be done.
func unregistered(c *config.Config, s ovn.Status) string {
	from := "external_ids:system-id in Open_vSwitch"
	if c.OVN.SystemID != "" {
		from = "ovn.systemID"
	}
	return fmt.Sprintf("OVN_Southbound has no row named %q in %s: ovn-controller has not registered this node, or its row was deleted; read ovn-controller's log, and correct %s if the name is wrong; "+
		"if the node was renamed, delete the chassis of its earlier name: ovn-sbctl chassis-del EARLIER", s.SystemID, strings.Join(s.Unregistered, " and "), from)
}

// settingReports is the source of what is reported of settings.
const settingReports = "settings"

// doubtful are the settings of which an operator has to know.
func doubtful(c *config.Config, s ovn.Status) []status.Object {
	out := withoutEffect(c, s)
	if c.Metadata.WithoutSecret() {
		out = append(out, status.Object{Kind: "setting", Key: "metadata.nova.secretFile", State: status.Warning, Reason: reason.NoSecret,
			Error: "not set: anyone who reaches Nova's metadata API can read any VM's metadata; set it, and metadata_proxy_shared_secret in Nova"})
	}
	return out
}

// withoutEffect are the settings with which this OVN does nothing.
func withoutEffect(c *config.Config, s ovn.Status) []status.Object {
	if c.EVPN.LearnedRoutes != config.SwitchOn || s.DynamicRouting {
		return nil
	}
	return []status.Object{{Kind: "setting", Key: "evpn.learnedRoutes", State: status.Warning, Reason: reason.OldOVN,
		Error: "OVN is older than 25.03, and learns no routes of the node: OVN has no imported route; update OVN, or set evpn.learnedRoutes to off"}}
}

// settledConditions are databases' conditions as they were last in sync, since then
// connected. Whenever the node needs other rows than before, as when a gateway port
// comes, a database is not in sync until its answer is there: that is work, and no
// failure before it takes longer than growPatience.
type settledConditions map[string]settledCondition

type settledCondition struct {
	databaseCondition
	at time.Time
}

const growPatience = 10 * time.Second

func (s settledConditions) keep(conditions map[string]databaseCondition, now time.Time) {
	for name, c := range conditions {
		was, had := s[name]
		switch {
		case c.ready:
			s[name] = settledCondition{c, now}
		case c.reason != reason.Syncing:
			delete(s, name)
		case had && was.detail == c.detail && now.Sub(was.at) < growPatience:
			conditions[name] = was.databaseCondition
		}
	}
}

// ConditionNames are the components of the databases.
var ConditionNames = map[string]string{"OVN_Southbound": "sb", "OVN_Northbound": "nb", "Open_vSwitch": "vswitchd"}

// databaseCondition is what the registry is told of a database.
type databaseCondition struct {
	ready          bool
	reason, detail string
}

// databaseConditions has one condition for each database that is followed, or
// that cannot be. A database whose settings cannot be followed is not ready even
// while the session from before is: it may be another database than is meant.
func databaseConditions(s ovn.Status) map[string]databaseCondition {
	inSync := map[string]bool{"sb": s.InSync.SB, "nb": s.InSync.NB, "vswitchd": s.InSync.VSwitch}
	out := map[string]databaseCondition{}
	for _, session := range s.Sessions {
		name := ConditionNames[session.Database]
		out[name] = sessionCondition(session, inSync[name])
	}
	if nb, followed := out["nb"]; followed && !s.Recalled.IsZero() {
		nb.detail = fmt.Sprintf("its content saved at %s is used; %s", s.Recalled.UTC().Format(time.RFC3339), nb.detail)
		out["nb"] = nb
	}
	if _, followed := out["sb"]; !followed {
		out["sb"] = databaseCondition{reason: reason.Starting, detail: "waits for the component vswitchd: external_ids:ovn-remote in Open_vSwitch is the endpoint"}
		if s.InSync.VSwitch {
			out["sb"] = databaseCondition{reason: reason.Starting, detail: "there is no endpoint: set external_ids:ovn-remote in Open_vSwitch, or ovn.sb"}
		}
	}
	for name, err := range map[string]error{"sb": s.SBErr, "nb": s.NBErr} {
		if err != nil {
			out[name] = databaseCondition{reason: reason.Misconfigured, detail: err.Error()}
		}
	}
	return out
}

func sessionCondition(s ovsdb.Status, inSync bool) databaseCondition {
	switch {
	case !s.Connected:
		detail := "forwarding is unchanged"
		if s.LastError != nil {
			detail += "; " + s.LastError.Error()
		}
		if s.Behind != "" {
			return databaseCondition{reason: reason.Behind, detail: detail}
		}
		return databaseCondition{reason: reason.Disconnected, detail: detail}
	case !inSync:
		return databaseCondition{reason: reason.Syncing, detail: s.Endpoint}
	case s.Behind != "":
		return databaseCondition{ready: true, reason: reason.Older, detail: s.Endpoint + "; " + s.Behind}
	}
	return databaseCondition{ready: true, reason: reason.InSync, detail: s.Endpoint}
}
