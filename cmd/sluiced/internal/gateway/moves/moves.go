// Package moves follows gateway ports that come, go and stand by: what this node still announces of
// those that have gone, which VRFs wait for Northbound, and how long an announcement takes.
package moves

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/tables"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// Gone are the announcements that a step takes back because their gateway port has
// gone to another node, or is no longer seen: where it goes, and that of a router
// that is deleted, look alike on a node that is no candidate for it any more.
func Gone(t *tables.Tables, rows *ovn.Rows, d wanted.Difference) map[intent.RouteKey]intent.Announcement {
	own, _ := rows.OwnChassis()
	left, out := map[intent.GatewayKey]bool{}, map[intent.RouteKey]intent.Announcement{}
	for _, k := range wanted.Of(d, intent.Announcements).Delete {
		if k.VNI == intent.DefaultVRF {
			continue // nothing here reaches the VM any more, and nobody is waited for
		}
		a, ok := tables.Of(t, intent.Announcements).Wanted(k)
		if !ok {
			continue
		}
		away, known := left[a.Gateway]
		if !known {
			g, _ := tables.Of(t, intent.Gateways).Wanted(a.Gateway)
			port, there := rows.Port(g.LogicalPort)
			away = g.LogicalPort != "" && (!there || own.UUID == "" || port.Chassis != own.UUID)
			left[a.Gateway] = away
		}
		if away {
			out[k] = a
		}
	}
	return out
}

// Moving are the VRFs of which gateway ports go with a step, whose announcements are gone, or
// come after they have stood by.
func (t *PortLog) Moving(gone map[intent.RouteKey]intent.Announcement, d wanted.Difference) map[intent.VNI]bool {
	out := map[intent.VNI]bool{}
	for k := range gone {
		out[k.VNI] = true
	}
	for _, k := range wanted.Of(d, intent.Standby).Delete {
		if g, there := t.gateways[k]; there && !slices.Contains(wanted.Of(d, intent.Gateways).Delete, k) {
			out[g.VNI] = true
		}
	}
	return out
}

// Elsewhere are the VRFs of gateway ports that stand by, of which none is here: they may have
// gone while no sluiced ran.
func (t *PortLog) Elsewhere(standby map[intent.GatewayKey]intent.Place) map[intent.VNI]bool {
	out := map[intent.VNI]bool{}
	for k := range standby {
		out[t.gateways[k].VNI] = true
	}
	if len(out) == 0 {
		return nil
	}
	for k, g := range t.gateways {
		if _, away := t.standby[k]; !away {
			delete(out, g.VNI)
		}
	}
	return out
}

// Speaker prefers routes of other nodes for what has gone there.
type Speaker interface {
	Yield(ctx context.Context, keys []intent.RouteKey, yes bool)
}

// Yield has what this node still announces of gateway ports that have gone lose
// against their new nodes, and what comes back win again.
func Yield(speaker Speaker, gone map[intent.RouteKey]intent.Announcement, d wanted.Delta[intent.RouteKey, intent.Announcement]) {
	if len(gone) > 0 {
		speaker.Yield(context.Background(), slices.Collect(maps.Keys(gone)), true)
	}
	tenants := slices.DeleteFunc(slices.Collect(maps.Keys(d.Set)), func(k intent.RouteKey) bool { return k.VNI == intent.DefaultVRF })
	if len(tenants) > 0 {
		speaker.Yield(context.Background(), tenants, false)
	}
}

// moveLook is how often the tables are looked at while moves follow each other: each
// has an end of its own.
const moveLook = time.Second

// AfterMoves calls look when the first of the moves is over, and from then on until
// the last one is.
func AfterMoves(ctx context.Context, moved <-chan struct{}, after time.Duration, look func()) {
	timer := time.NewTimer(after)
	timer.Stop()
	armed, last := false, time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-moved:
			last = time.Now().Add(after)
			if !armed {
				timer.Reset(after)
			}
			armed = true
		case now := <-timer.C:
			look()
			if armed = now.Before(last); armed {
				timer.Reset(min(last.Sub(now), moveLook))
			}
		}
	}
}
