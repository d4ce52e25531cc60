package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/controlplane/rib"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/tables"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// gone are the announcements that a step takes back because their gateway port has
// gone to another node, or is no longer seen: where it goes, and that of a router
// that is deleted, look alike on a node that is no candidate for it any more.
func (n *node) gone(rows *ovn.Rows, d wanted.Difference) map[intent.RouteKey]intent.Announcement {
	own, _ := rows.OwnChassis()
	left, out := map[intent.GatewayKey]bool{}, map[intent.RouteKey]intent.Announcement{}
	for _, k := range wanted.Of(d, intent.Announcements).Delete {
		if k.VNI == intent.DefaultVRF {
			continue // nothing here reaches the machine any more, and nobody is waited for
		}
		a, ok := tables.Of(n.tables, intent.Announcements).Wanted(k)
		if !ok {
			continue
		}
		away, known := left[a.Gateway]
		if !known {
			g, _ := tables.Of(n.tables, intent.Gateways).Wanted(a.Gateway)
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

// moving are the VRFs of which gateway ports go with a step, whose announcements are gone, or
// come after they have stood by.
func (t *tenants) moving(gone map[intent.RouteKey]intent.Announcement, d wanted.Difference) map[intent.VNI]bool {
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

// elsewhere are the VRFs of gateway ports that stand by, of which none is here: they may have
// gone while no sluiced ran.
func (t *tenants) elsewhere(standby map[intent.GatewayKey]intent.Place) map[intent.VNI]bool {
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

// relays hands on the ways to what is behind gateway ports elsewhere, as far as
// they are known. It is called inside an update of the pipeline.
func (n *node) relays(d wanted.Delta[intent.RouteKey, intent.Route]) wanted.Delta[intent.RouteKey, intent.Route] {
	gone, set := d.Delete, map[intent.RouteKey]intent.Route{}
	for k, r := range d.Set {
		if r.NextHops.Len() == 0 {
			gone = append(gone, k)
		} else {
			set[k] = r
		}
	}
	return delta(n.rib.Update(rib.Relay, set, gone))
}

// yield has what this node still announces of gateway ports that have gone lose
// against their new nodes, and what comes back win again.
func (n *node) yield(gone map[intent.RouteKey]intent.Announcement, d wanted.Delta[intent.RouteKey, intent.Announcement]) {
	if len(gone) > 0 {
		n.speaker.Yield(context.Background(), slices.Collect(maps.Keys(gone)), true)
	}
	tenants := slices.DeleteFunc(slices.Collect(maps.Keys(d.Set)), func(k intent.RouteKey) bool { return k.VNI == intent.DefaultVRF })
	if len(tenants) > 0 {
		n.speaker.Yield(context.Background(), tenants, false)
	}
}

// better tells whether BGP shows a way to a destination by another node. It is
// called with the pipeline's lock held.
func (n *node) better(k intent.RouteKey) bool { return n.rib.Has(rib.BGP, k) }

// endMoves has the tables looked at again when what is kept after a move is kept no
// longer.
func (n *node) endMoves(ctx context.Context) error {
	afterMoves(ctx, n.moved, tables.MoveTime+time.Millisecond, n.tables.Pipeline.Kick)
	return nil
}

// moveLook is how often the tables are looked at while moves follow each other: each
// has an end of its own.
const moveLook = time.Second

// afterMoves calls look when the first of the moves is over, and from then on until
// the last one is.
func afterMoves(ctx context.Context, moved <-chan struct{}, after time.Duration, look func()) {
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

// publish tells the other nodes, by way of OVN, who this one is and where the
// fabric reaches it while it is a gateway. d.mu is held.
func (d *daemon) publish() error {
	pairs := map[string]string{ovn.PublishPrefix + "version": version}
	if n := d.node; n != nil {
		for k, v := range ovn.Pairs(intent.FabricAddress{VTEP: n.id.VTEP, RouterMAC: n.id.RouterMAC}) {
			pairs[k] = v
		}
	}
	return d.follower.Publish(pairs)
}

// noteStandby reports how many gateway ports may come. d.mu is held.
func (d *daemon) noteStandby(n int) {
	if n == 0 {
		d.reg.SetCondition("standby", true, reason.NoStandby, "")
		return
	}
	d.reg.SetCondition("standby", true, reason.Standby, fmt.Sprintf("%d gateway ports are on other nodes and may come to this one", n))
}
