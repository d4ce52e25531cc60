package main

import (
	"context"

	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/admin/nodeapi"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// runAdmin answers sluicectl.
func (d *daemon) runAdmin(ctx context.Context) error {
	s := admin.NewServer(nodeapi.Program, d.cfg.Admin.Socket, d.log)
	admin.Handle(s, nodeapi.GetConfig, func(context.Context, admin.Nothing) (nodeapi.Text, error) {
		b, err := d.cfg.Effective()
		return nodeapi.Text{Text: string(b)}, err
	})
	admin.Handle(s, nodeapi.GetStatus, func(context.Context, admin.Nothing) (status.Status, error) { return d.status(), nil })
	admin.Handle(s, nodeapi.GetObjects, func(context.Context, admin.Nothing) ([]status.Object, error) { return d.reg.Objects(nil), nil })
	handleList(s, d, nodeapi.ListVRFs, []status.VRF{}, func(ctx context.Context, n *node, _ admin.Nothing) ([]status.VRF, error) { return n.vrfs(ctx) })
	handle(s, d, nodeapi.GetVRF, func(ctx context.Context, n *node, q nodeapi.VRFSelector) (status.VRF, error) {
		return n.vrf(ctx, q.VNI)
	})
	admin.Handle(s, nodeapi.ListVIPs, func(_ context.Context, q nodeapi.VRFSelector) ([]status.VIP, error) {
		return ask(d, q.VNI, func(b balancer) ([]status.VIP, error) { return b.list(q.VNI), nil })
	})
	admin.Handle(s, nodeapi.ListBackends, func(_ context.Context, q nodeapi.VRFSelector) ([]status.VIP, error) {
		return ask(d, q.VNI, func(b balancer) ([]status.VIP, error) { return b.backends(q.VNI) })
	})
	admin.Handle(s, nodeapi.ListFlows, func(_ context.Context, q nodeapi.VRFSelector) (status.Flows, error) { return d.flows(q.VNI) })
	admin.Handle(s, nodeapi.ListMachines, func(context.Context, admin.Nothing) ([]status.Machine, error) { return d.machines(), nil })
	admin.Handle(s, nodeapi.Weigh, d.weigh)
	admin.Handle(s, nodeapi.ExplainVIP, func(_ context.Context, q status.VIPQuery) (status.VIPExplanation, error) { return d.explainVIP(q) })
	handleList(s, d, nodeapi.ListRoutes, []status.Route{}, func(ctx context.Context, n *node, q nodeapi.VRFSelector) ([]status.Route, error) {
		return n.routesOf(ctx, q.VNI)
	})
	handleList(s, d, nodeapi.GetBGP, d.noBGP(), func(ctx context.Context, n *node, _ admin.Nothing) (status.BGP, error) { return n.bgp(ctx) })
	handleList(s, d, nodeapi.ListBGPRoutes, []status.BGPRoute{}, func(ctx context.Context, n *node, _ nodeapi.VRFSelector) ([]status.BGPRoute, error) {
		return n.bgpRoutes(ctx)
	})
	handleList(s, d, nodeapi.GetUnderlay, noUnderlay, func(ctx context.Context, n *node, _ admin.Nothing) (status.Underlay, error) {
		return n.underlayStatus(ctx)
	})
	admin.Handle(s, nodeapi.GetDrops, func(context.Context, admin.Nothing) (status.Drops, error) { return d.drops() })
	admin.Handle(s, nodeapi.GetDiff, func(ctx context.Context, _ admin.Nothing) (status.Diff, error) { return d.diff(ctx) })
	admin.Handle(s, nodeapi.GetDrain, func(context.Context, admin.Nothing) (status.Drain, error) { return d.drainStatus(), nil })
	admin.Handle(s, nodeapi.Drain, d.beginDrain)
	admin.Handle(s, nodeapi.Undrain, d.endDrain)
	admin.Handle(s, nodeapi.Explain, d.explainNoted)
	admin.Handle(s, nodeapi.GetMetadata, func(context.Context, admin.Nothing) (status.Metadata, error) { return d.metadataStatus(), nil })
	admin.Handle(s, nodeapi.ExplainMetadata, func(_ context.Context, q status.MetadataQuery) (status.MetadataExplanation, error) {
		return d.explainMetadata(q.Port)
	})
	admin.Handle(s, nodeapi.Trace, d.trace)
	admin.HandleStream(s, nodeapi.FollowDrops, func(ctx context.Context, _ admin.Nothing, emit func(status.Drop) error) error {
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
