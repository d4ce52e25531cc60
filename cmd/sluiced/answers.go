package main

import (
	"context"

	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// runAdmin answers sluicectl.
func (d *daemon) runAdmin(ctx context.Context) error {
	s := admin.NewServer(d.cfg.Admin.Socket, d.log)
	admin.Handle(s, admin.GetConfig, func(context.Context, admin.Nothing) (admin.Text, error) {
		b, err := d.cfg.Effective()
		return admin.Text{Text: string(b)}, err
	})
	admin.Handle(s, admin.GetStatus, func(context.Context, admin.Nothing) (status.Status, error) { return d.status(), nil })
	admin.Handle(s, admin.GetObjects, func(context.Context, admin.Nothing) ([]status.Object, error) { return d.reg.Objects(nil), nil })
	handleList(s, d, admin.ListVRFs, []status.VRF{}, func(ctx context.Context, n *node, _ admin.Nothing) ([]status.VRF, error) { return n.vrfs(ctx) })
	handle(s, d, admin.GetVRF, func(ctx context.Context, n *node, q admin.VRFSelector) (status.VRF, error) { return n.vrf(ctx, q.VNI) })
	admin.Handle(s, admin.ListVIPs, func(_ context.Context, q admin.VRFSelector) ([]status.VIP, error) {
		return ask(d, q.VNI, func(b balancer) ([]status.VIP, error) { return b.list(q.VNI), nil })
	})
	admin.Handle(s, admin.ListBackends, func(_ context.Context, q admin.VRFSelector) ([]status.VIP, error) {
		return ask(d, q.VNI, func(b balancer) ([]status.VIP, error) { return b.backends(q.VNI) })
	})
	admin.Handle(s, admin.ListFlows, func(_ context.Context, q admin.VRFSelector) (status.Flows, error) { return d.flows(q.VNI) })
	admin.Handle(s, admin.ListMachines, func(context.Context, admin.Nothing) ([]status.Machine, error) { return d.clients.machines(), nil })
	admin.Handle(s, admin.Weigh, d.weigh)
	admin.Handle(s, admin.ExplainVIP, func(_ context.Context, q status.VIPQuery) (status.VIPExplanation, error) { return d.explainVIP(q) })
	handleList(s, d, admin.ListRoutes, []status.Route{}, func(ctx context.Context, n *node, q admin.VRFSelector) ([]status.Route, error) {
		return n.routesOf(ctx, q.VNI)
	})
	handleList(s, d, admin.GetBGP, d.noBGP(), func(ctx context.Context, n *node, _ admin.Nothing) (status.BGP, error) { return n.bgp(ctx) })
	handleList(s, d, admin.ListBGPRoutes, []status.BGPRoute{}, func(ctx context.Context, n *node, _ admin.VRFSelector) ([]status.BGPRoute, error) {
		return n.bgpRoutes(ctx)
	})
	handleList(s, d, admin.GetUnderlay, noUnderlay, func(ctx context.Context, n *node, _ admin.Nothing) (status.Underlay, error) {
		return n.underlayStatus(ctx)
	})
	admin.Handle(s, admin.GetDrops, func(context.Context, admin.Nothing) (status.Drops, error) { return d.drops() })
	admin.Handle(s, admin.GetDiff, func(ctx context.Context, _ admin.Nothing) (status.Diff, error) { return d.diff(ctx) })
	admin.Handle(s, admin.GetDrain, func(context.Context, admin.Nothing) (status.Drain, error) { return d.drainStatus(), nil })
	admin.Handle(s, admin.Drain, d.beginDrain)
	admin.Handle(s, admin.Undrain, d.endDrain)
	admin.Handle(s, admin.Explain, d.explainNoted)
	admin.Handle(s, admin.GetMetadata, func(context.Context, admin.Nothing) (status.Metadata, error) { return d.metadata.status(), nil })
	admin.Handle(s, admin.ExplainMetadata, func(_ context.Context, q status.MetadataQuery) (status.MetadataExplanation, error) {
		return d.metadata.explain(q.Port)
	})
	admin.Handle(s, admin.Trace, d.trace)
	admin.HandleStream(s, admin.FollowDrops, func(ctx context.Context, _ admin.Nothing, emit func(status.Drop) error) error {
		return d.followDrops(ctx, emit)
	})
	return s.Run(ctx)
}

// handle attaches a question that needs the node.
func handle[Req, Resp any](s *admin.Server, d *daemon, e admin.Endpoint[Req, Resp], f func(context.Context, *node, Req) (Resp, error)) {
	admin.Handle(s, e, func(ctx context.Context, q Req) (Resp, error) {
		n, err := d.running()
		if err != nil {
			var none Resp
			return none, err
		}
		return f(ctx, n, q)
	})
}
