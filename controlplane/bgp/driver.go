package bgp

import (
	"context"
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// driver lets a reconcile.Pipeline announce. The BGP server keeps a route's wire
// form only, so the rows as applied are kept here for List, without their keys; a new
// process starts with none, as its sessions do.
type driver struct {
	speaker *GoBGP
	listed  map[intent.RouteKey]listed
}

// listed is a row without its key.
type listed struct {
	gateway intent.GatewayKey
	vips    bool
	// failed: a step of it has. The speaker takes it up again by itself, or waits for a
	// policy, so it may be announced or withdrawn at any time.
	failed bool
}

// List implements reconcile.Driver.
func (d driver) List(context.Context) (map[intent.RouteKey]intent.Announcement, error) {
	out := make(map[intent.RouteKey]intent.Announcement, len(d.listed))
	for k, row := range d.listed {
		out[k] = intent.Announcement{}
		if !row.failed {
			out[k] = intent.Announcement{Key: k, Gateway: row.gateway, VIPs: row.vips}
		}
	}
	return out, nil
}

// Apply implements reconcile.Driver.
func (d driver) Apply(ctx context.Context, rows []reconcile.Row[intent.RouteKey, intent.Announcement]) []error {
	upserts, exposed := make([]Announcement, 0, len(rows)), []netip.Prefix(nil)
	for _, r := range rows {
		if r.Key.VNI == intent.DefaultVRF {
			exposed = append(exposed, r.Key.Prefix)
			continue
		}
		upserts = append(upserts, Announcement{Key: r.Key})
	}
	failed := d.speaker.Update(ctx, upserts, nil)
	d.expose(ctx, failed, exposed, nil)
	for _, r := range rows {
		d.listed[r.Key] = listed{r.Value.Gateway, r.Value.VIPs, failed[r.Key] != nil}
	}
	return inOrder(rows, failed)
}

// Delete implements reconcile.Driver.
func (d driver) Delete(ctx context.Context, keys []intent.RouteKey) []error {
	tenants, exposed := make([]intent.RouteKey, 0, len(keys)), []netip.Prefix(nil)
	for _, k := range keys {
		if k.VNI == intent.DefaultVRF {
			exposed = append(exposed, k.Prefix)
			continue
		}
		tenants = append(tenants, k)
	}
	failed := d.speaker.Update(ctx, nil, tenants)
	d.expose(ctx, failed, nil, exposed)
	rows := make([]reconcile.Row[intent.RouteKey, intent.Announcement], 0, len(keys))
	for _, k := range keys {
		if delete(d.listed, k); failed[k] != nil {
			d.listed[k] = listed{failed: true}
		}
		rows = append(rows, reconcile.Row[intent.RouteKey, intent.Announcement]{Key: k})
	}
	return inOrder(rows, failed)
}

// expose announces addresses of the default VRF, and withdraws others, as plain
// unicast. What fails is added to failed.
func (d driver) expose(ctx context.Context, failed map[intent.RouteKey]error, add, remove []netip.Prefix) {
	if len(add)+len(remove) == 0 {
		return
	}
	for p, err := range d.speaker.setUnicast(ctx, useExposed, add, remove) {
		failed[intent.RouteKey{VNI: intent.DefaultVRF, Prefix: p}] = err
	}
}

func inOrder(rows []reconcile.Row[intent.RouteKey, intent.Announcement], failed map[intent.RouteKey]error) []error {
	if len(failed) == 0 {
		return nil
	}
	out := make([]error, len(rows))
	for i, r := range rows {
		out[i] = failed[r.Key]
	}
	return out
}
