package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/intent"
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
	handle(s, d, admin.ListVRFs, func(ctx context.Context, n *node, _ admin.Nothing) ([]status.VRF, error) { return n.vrfs(ctx) })
	handle(s, d, admin.GetVRF, func(ctx context.Context, n *node, q admin.VRFSelector) (status.VRF, error) { return n.vrf(ctx, q.VNI) })
	handle(s, d, admin.ListRoutes, func(_ context.Context, n *node, q admin.VRFSelector) ([]status.Route, error) {
		return n.routes(q.VNI), nil
	})
	handle(s, d, admin.GetBGP, func(ctx context.Context, n *node, _ admin.Nothing) (status.BGP, error) { return n.bgp(ctx) })
	handle(s, d, admin.ListBGPRoutes, func(ctx context.Context, n *node, _ admin.VRFSelector) ([]status.BGPRoute, error) {
		return n.bgpRoutes(ctx)
	})
	handle(s, d, admin.GetDrops, func(_ context.Context, n *node, _ admin.Nothing) (status.Drops, error) {
		return n.dp.Reader().DropStatus()
	})
	handle(s, d, admin.GetDiff, func(ctx context.Context, n *node, _ admin.Nothing) (status.Diff, error) { return n.diff(ctx) })
	handle(s, d, admin.Explain, func(ctx context.Context, _ *node, q status.Query) (status.Explanation, error) {
		return d.explain(ctx, q)
	})
	handle(s, d, admin.Trace, func(ctx context.Context, n *node, r status.TraceRequest) (status.Trace, error) {
		return n.trace(ctx, r)
	})
	admin.HandleStream(s, admin.FollowDrops, func(ctx context.Context, _ admin.Nothing, emit func(status.Drop) error) error {
		n, err := d.running()
		if err != nil {
			return err
		}
		return n.followDrops(ctx, emit)
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

// running is the node, or why there is none.
func (d *daemon) running() (*node, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.node == nil {
		return nil, fmt.Errorf("%w: this node forwards nothing: %s", admin.ErrNotFound, d.latest.reason)
	}
	return d.node, nil
}

func (d *daemon) status() status.Status {
	ready, _ := d.reg.Ready()
	s := status.Status{Version: version, Started: d.started, Ready: ready, Conditions: d.reg.Conditions(), Counts: d.reg.Counts(), Problems: d.reg.Problems()}
	d.mu.Lock()
	defer d.mu.Unlock()
	s.Chassis, s.Role, s.RoleReason = d.latest.systemID, roleWord(d.latest), d.latest.reason
	if n := d.node; n != nil {
		s.VTEP, s.RouterID, s.RouterMAC, s.Tables = n.id.vtep, n.routerID, n.id.routerMAC, n.tableStatus()
	}
	return s
}

func (n *node) tableStatus() []status.Table {
	var out []status.Table
	for _, stage := range n.tables.pipeline.Stages() {
		st := stage.Stats()
		t := status.Table{Name: stage.Name(), Wanted: st.Wanted, Actual: st.Actual, Failed: st.Failed, Capacity: n.capacity(stage.Name())}
		if err := n.tables.pipeline.ListError(stage.Name()); err != nil {
			t.Held = err.Error()
		}
		out = append(out, t)
	}
	return out
}

func (n *node) routes(only intent.VNI) []status.Route {
	wanted, actual := n.tables.routes.Rows()
	announced, _ := n.tables.announcements.Rows()
	ports := n.portNames()
	var out []status.Route
	for k, r := range wanted {
		if only != 0 && k.VNI != only {
			continue
		}
		row := status.Route{VNI: k.VNI, Prefix: k.Prefix, Kind: r.Kind.String(), NextHops: r.NextHops.All(), Programmed: actual[k] == r, State: status.OK}
		if r.Kind == intent.RouteLocal {
			row.Gateway = cmp.Or(ports[r.Gateway], r.Gateway.String())
		}
		if _, ok := announced[k]; ok {
			row.Announced, _ = n.tables.announcements.State(k)
		}
		if !row.Programmed {
			row.State = status.Pending
			if _, err := n.tables.routes.State(k); err != nil {
				row.State, row.Reason, row.Error = status.Error, reasonOf(err), err.Error()
			}
		}
		out = append(out, row)
	}
	slices.SortFunc(out, status.Route.Compare)
	return out
}

func (n *node) portNames() map[intent.GatewayKey]string {
	wanted, _ := n.tables.gateways.Rows()
	out := make(map[intent.GatewayKey]string, len(wanted))
	for k, g := range wanted {
		out[k] = g.LogicalPort
	}
	return out
}

// diff reads everything back first, so that what others changed shows too.
func (n *node) diff(ctx context.Context) (status.Diff, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out := status.Diff{Changes: []status.Change{}}
	changes, err := n.tables.pipeline.Compare(ctx)
	for _, c := range changes {
		row := status.Change{Table: c.Table, Key: c.Key, Action: string(c.Op), Wanted: c.New, Actual: c.Old}
		if c.Held {
			row.Held = cmp.Or(c.Why, "its source is not in sync")
		} else {
			row.Error = c.Why
		}
		out.Changes = append(out.Changes, row)
	}
	return out, err
}
