package main

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/admin/nodeapi"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// daemon asks a running sluiced.
type daemon struct{ client *admin.Client }

func newDaemon(o *options) *daemon {
	return &daemon{client: o.client()}
}

func (o *options) client() *admin.Client {
	return admin.NewClientWithin(nodeapi.Program, o.socket, cmp.Or(o.timeout, admin.Patience))
}

// running tells whether there is a sluiced. Anything but its absence counts as
// running: a refusal is the answer that a person has to see.
func (d *daemon) running() bool { return !errors.Is(d.ask(), admin.ErrNotRunning) }

// answers is running, but for one that is stopped or hangs.
func (d *daemon) answers() bool {
	err := d.ask()
	return !errors.Is(err, admin.ErrNotRunning) && !errors.Is(err, admin.ErrSilent)
}

func (d *daemon) ask() error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, err := admin.Call(ctx, d.client, nodeapi.GetConfig, admin.Nothing{})
	return err
}

func (d *daemon) Status(ctx context.Context) (status.Status, error) {
	return admin.Call(ctx, d.client, nodeapi.GetStatus, admin.Nothing{})
}

func (d *daemon) VRFs(ctx context.Context) ([]status.VRF, error) {
	return admin.Call(ctx, d.client, nodeapi.ListVRFs, admin.Nothing{})
}

func (d *daemon) VRF(ctx context.Context, vni intent.VNI) (status.VRF, error) {
	return admin.Call(ctx, d.client, nodeapi.GetVRF, nodeapi.VRFSelector{VNI: vni})
}

func (d *daemon) Routes(ctx context.Context, vni intent.VNI) ([]status.Route, error) {
	return admin.Call(ctx, d.client, nodeapi.ListRoutes, nodeapi.VRFSelector{VNI: vni})
}

func (d *daemon) BGP(ctx context.Context) (status.BGP, error) {
	return admin.Call(ctx, d.client, nodeapi.GetBGP, admin.Nothing{})
}

func (d *daemon) Underlay(ctx context.Context) (status.Underlay, error) {
	return admin.Call(ctx, d.client, nodeapi.GetUnderlay, admin.Nothing{})
}

func (d *daemon) BGPRoutes(ctx context.Context, vni intent.VNI) ([]status.BGPRoute, error) {
	return admin.Call(ctx, d.client, nodeapi.ListBGPRoutes, nodeapi.VRFSelector{VNI: vni})
}

func (d *daemon) Drops(ctx context.Context) (status.Drops, error) {
	return admin.Call(ctx, d.client, nodeapi.GetDrops, admin.Nothing{})
}

func (d *daemon) FollowDrops(ctx context.Context, each func(status.Drop) error) error {
	return admin.Follow(ctx, d.client, nodeapi.FollowDrops, admin.Nothing{}, each)
}

func (d *daemon) Diff(ctx context.Context) (status.Diff, error) {
	return admin.Call(ctx, d.client, nodeapi.GetDiff, admin.Nothing{})
}

func (d *daemon) Explain(ctx context.Context, q status.Query) (status.Explanation, error) {
	return admin.Call(ctx, d.client, nodeapi.Explain, q)
}

func (d *daemon) Trace(ctx context.Context, r status.TraceRequest) (status.Trace, error) {
	return admin.Call(ctx, d.client, nodeapi.Trace, r)
}

var _ source = (*daemon)(nil)
