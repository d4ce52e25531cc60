package main

import (
	"context"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

const healthInterval = 500 * time.Millisecond

// watchHealth keeps the conditions of the databases up to date.
func (d *daemon) watchHealth(ctx context.Context) error {
	tick := time.NewTicker(healthInterval)
	defer tick.Stop()
	published := false
	for {
		s := d.follower.Status()
		for _, session := range s.Sessions {
			d.databaseCondition(session, s.InSync)
		}
		if s.Err != nil {
			d.reg.SetCondition("sb", false, "misconfigured", s.Err.Error())
		}
		if s.Publish != nil {
			d.reg.SetCondition("chassis-private", false, "refused", s.Publish.Error())
		} else if published {
			d.reg.SetCondition("chassis-private", true, "published", "")
		}
		if !published && s.InSync.SB {
			published = d.follower.Publish(map[string]string{"sluice-version": version}) == nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

var conditionNames = map[string]string{"OVN_Southbound": "sb", "OVN_Northbound": "nb", "Open_vSwitch": "vswitchd"}

func (d *daemon) databaseCondition(s ovsdb.Status, in ovn.InSync) {
	name := conditionNames[s.Database]
	ready := map[string]bool{"sb": in.SB, "nb": in.NB, "vswitchd": in.VSwitch}[name]
	switch {
	case !s.Connected:
		detail := "forwarding is unchanged"
		if s.LastError != nil {
			detail += "; " + s.LastError.Error()
		}
		d.reg.SetCondition(name, false, "disconnected", detail)
	case !ready:
		d.reg.SetCondition(name, false, "syncing", s.Endpoint)
	default:
		d.reg.SetCondition(name, true, "in-sync", s.Endpoint)
	}
}
