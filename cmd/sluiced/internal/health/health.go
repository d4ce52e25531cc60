// Package health reports the databases, settings that an operator has to know, overdue rows, and
// lost pins. All other components report themselves.
package health

import (
	"context"
	"fmt"
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
		for name, c := range conditions {
			d.reg.SetCondition(name, c.ready, c.reason, c.detail)
		}
		if s.InSync.SB {
			d.reg.Reporter(settingReports).Replace(doubtful(d.cfg, s))
		}
		if s.Publish != nil {
			d.reg.SetCondition("chassis-private", false, reason.Refused, s.Publish.Error())
		} else if published {
			d.reg.SetCondition("chassis-private", true, reason.Published, "")
		}
		if !published && s.InSync.SB {
			published = d.publish() == nil
		}
	})
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
