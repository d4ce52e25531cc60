package main

import (
	"context"

	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/admin/nodeapi"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// runAdmin answers sluicectl.
func (d *daemon) runAdmin(ctx context.Context) error {
	s := admin.NewServer(nodeapi.Program, d.Config.Admin.Socket, d.Log)
	admin.Handle(s, nodeapi.GetConfig, func(context.Context, admin.Nothing) (nodeapi.Text, error) {
		b, err := d.Config.Effective()
		return nodeapi.Text{Text: string(b)}, err
	})
	r := d.report
	admin.Handle(s, nodeapi.GetStatus, func(context.Context, admin.Nothing) (status.Status, error) { return r.Status(), nil })
	admin.Handle(s, nodeapi.GetObjects, func(context.Context, admin.Nothing) ([]status.Object, error) { return d.Reg.Objects(nil), nil })
	admin.Handle(s, nodeapi.ListVRFs, func(ctx context.Context, _ admin.Nothing) ([]status.VRF, error) { return r.VRFs(ctx) })
	admin.Handle(s, nodeapi.GetVRF, func(ctx context.Context, q nodeapi.VRFSelector) (status.VRF, error) { return r.VRF(ctx, q.VNI) })
	admin.Handle(s, nodeapi.ListRoutes, func(ctx context.Context, q nodeapi.VRFSelector) ([]status.Route, error) { return r.Routes(ctx, q.VNI) })
	admin.Handle(s, nodeapi.ListVIPs, func(_ context.Context, q nodeapi.VRFSelector) ([]status.VIP, error) { return r.VIPs(q.VNI) })
	admin.Handle(s, nodeapi.ListBackends, func(_ context.Context, q nodeapi.VRFSelector) ([]status.VIP, error) { return r.Backends(q.VNI) })
	admin.Handle(s, nodeapi.ListSessions, func(_ context.Context, q nodeapi.VRFSelector) (status.Sessions, error) { return r.Sessions(q.VNI) })
	admin.Handle(s, nodeapi.ListVMs, func(context.Context, admin.Nothing) ([]status.VM, error) { return r.VMs(), nil })
	admin.Handle(s, nodeapi.Weigh, r.Weigh)
	admin.Handle(s, nodeapi.ExplainVIP, func(_ context.Context, q status.VIPQuery) (status.VIPExplanation, error) { return r.ExplainVIP(q) })
	admin.Handle(s, nodeapi.GetBGP, func(ctx context.Context, _ admin.Nothing) (status.BGP, error) { return r.BGP(ctx) })
	admin.Handle(s, nodeapi.ListBGPRoutes, func(ctx context.Context, q nodeapi.VRFSelector) ([]status.BGPRoute, error) {
		return r.BGPRoutes(ctx, q.VNI)
	})
	admin.Handle(s, nodeapi.GetUnderlay, func(ctx context.Context, _ admin.Nothing) (status.Underlay, error) { return r.Underlay(ctx) })
	admin.Handle(s, nodeapi.GetDrops, func(context.Context, admin.Nothing) (status.Drops, error) { return r.Drops() })
	admin.HandleStream(s, nodeapi.FollowDrops, func(ctx context.Context, _ admin.Nothing, emit func(status.Drop) error) error {
		return r.FollowDrops(ctx, emit)
	})
	admin.Handle(s, nodeapi.GetDiff, func(ctx context.Context, _ admin.Nothing) (status.Diff, error) { return r.Diff(ctx) })
	admin.Handle(s, nodeapi.GetMetadata, func(context.Context, admin.Nothing) (status.Metadata, error) { return r.Metadata(), nil })
	admin.Handle(s, nodeapi.ExplainMetadata, func(_ context.Context, q status.MetadataQuery) (status.MetadataExplanation, error) {
		return r.ExplainMetadata(q.Port)
	})
	admin.Handle(s, nodeapi.GetDrain, func(context.Context, admin.Nothing) (status.Drain, error) { return d.drain.Status(), nil })
	admin.Handle(s, nodeapi.Drain, d.drain.Begin)
	admin.Handle(s, nodeapi.Undrain, d.drain.End)
	admin.Handle(s, nodeapi.Explain, d.explain.Explain)
	admin.Handle(s, nodeapi.Trace, d.explain.Trace)
	return s.Run(ctx)
}
