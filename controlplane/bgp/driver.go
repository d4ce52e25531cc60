package bgp

import (
	"context"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// driver lets a reconcile.Pipeline announce. The BGP server keeps a route's wire
// form only, so the rows as applied are kept here for List, as the gateway of each
// key; a new process starts with none, as its sessions do.
type driver struct {
	speaker *GoBGP
	listed  map[intent.RouteKey]intent.GatewayKey
}

// List implements reconcile.Driver.
func (d driver) List(context.Context) (map[intent.RouteKey]intent.Announcement, error) {
	out := make(map[intent.RouteKey]intent.Announcement, len(d.listed))
	for k, gateway := range d.listed {
		out[k] = intent.Announcement{Key: k, Gateway: gateway}
	}
	return out, nil
}

// Apply implements reconcile.Driver.
func (d driver) Apply(ctx context.Context, rows []reconcile.Row[intent.RouteKey, intent.Announcement]) []error {
	upserts := make([]Announcement, 0, len(rows))
	for _, r := range rows {
		upserts = append(upserts, Announcement{Key: r.Key})
	}
	failed := d.speaker.Update(ctx, upserts, nil)
	for _, r := range rows {
		if failed[r.Key] == nil {
			d.listed[r.Key] = r.Value.Gateway
		}
	}
	return inOrder(rows, failed)
}

// Delete implements reconcile.Driver.
func (d driver) Delete(ctx context.Context, keys []intent.RouteKey) []error {
	failed := d.speaker.Update(ctx, nil, keys)
	rows := make([]reconcile.Row[intent.RouteKey, intent.Announcement], 0, len(keys))
	for _, k := range keys {
		if failed[k] == nil {
			delete(d.listed, k)
		}
		rows = append(rows, reconcile.Row[intent.RouteKey, intent.Announcement]{Key: k})
	}
	return inOrder(rows, failed)
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
