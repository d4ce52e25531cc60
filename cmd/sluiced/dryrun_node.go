package main

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// plan fills in the changes of a gateway node, in the order of a start.
func (n *node) plan(ctx context.Context, p *status.Plan) error {
	fabric, err := n.newFabric(nil).Check()
	switch {
	case settings.Whole(n.d.cfg) && fabric.IfIndex != 0:
		p.Changes = append(p.Changes, status.Change{Table: "device", Key: kernel.FabricName, Action: string(reconcile.OpDelete)})
	case settings.Whole(n.d.cfg):
	case len(fabric.Differs) > 0 || err != nil:
		p.Changes = append(p.Changes, fabricChange(fabric, err))
	}
	pinned, err := ebpf.Inspect(n.ebpfConfig(fabric.IfIndex))
	if err != nil {
		return err
	}
	defer func() { _ = pinned.Close() }()
	changes, err := pinned.Changes()
	if err != nil {
		return err
	}
	p.Changes = append(p.Changes, changes...)
	rows, err := n.compare(ctx, pinned)
	if err != nil {
		return err
	}
	if err := n.planAttachments(pinned, fabric.IfIndex, p); err != nil {
		return err
	}
	p.Changes = append(p.Changes, n.known(rows, p)...)
	p.Announcements, p.Neighbors = n.plannedRoutes(), n.neighbors()
	return n.planUnderlay(ctx, p)
}

func fabricChange(s kernel.FabricState, err error) status.Change {
	c := status.Change{Table: "device", Key: kernel.FabricName, Action: string(reconcile.OpChange),
		Actual: strings.Join(s.Differs, "; "), Wanted: "up, closed, in external mode"}
	if s.Missing || err != nil {
		c.Action, c.Actual = string(reconcile.OpAdd), ""
	}
	if err != nil {
		c.Error = err.Error()
	}
	return c
}

// compare computes the tables' difference.
func (n *node) compare(ctx context.Context, pinned *ebpf.Inspection) ([]reconcile.Change, error) {
	n.links = n.newLinks(nil)
	never := func(intent.NextHopSet, func(netip.Addr) bool) bool { return false }
	d := tables.Drivers{} // BGP is not asked: nothing says what it has
	tables.Drive(d, intent.Bridges, reconcile.ReadOnly(n.links))
	tables.Drive(d, intent.KernelVRFs, reconcile.ReadOnly(n.kernel.VRFs()))
	tables.Drive(d, intent.KernelGateways, reconcile.ReadOnly(n.kernel.Gateways()))
	tables.Drive(d, intent.KernelRoutes, reconcile.ReadOnly(n.kernel.Routes()))
	tables.Drive(d, intent.VRFs, reconcile.ReadOnly(pinned.VRFs()))
	tables.Drive(d, intent.Gateways, reconcile.ReadOnly(pinned.Gateways()))
	tables.Drive(d, intent.ServedNextHops, reconcile.ReadOnly(pinned.Served()))
	tables.Drive(d, intent.VTEPs, reconcile.ReadOnly(pinned.VTEPs()))
	tables.Drive(d, intent.BackendRoutes, reconcile.ReadOnly(pinned.BackendRoutes()))
	tables.Drive(d, intent.VIPs, reconcile.ReadOnly(pinned.VIPs()))
	tables.Drive(d, intent.Routes, reconcile.ReadOnly(pinned.Routes()))
	tables.Drive(d, intent.UnderlayDevices, reconcile.ReadOnly(pinned.UnderlayDevices()))
	tables.Drive(d, intent.SteeringFlows, reconcile.ReadOnly(ovs.NewSteering(n.d.ovs)))
	tables.Drive(d, intent.LearnedRoutes, reconcile.ReadOnly(kernel.NewLearnedRoutes(netns.Namespace{})))
	n.tables = tables.New(d, tables.Sources{
		OVN: n.d.steps.AllInSync, BGP: func() bool { return false }, Pending: n.pending.has, Lingers: never, LearnedBy: n.learned.VRF,
	}, tables.Options{Status: n.d.reg, Log: n.d.log, Dry: true})
	n.want(n.d.steps.Asked())
	n.tables.Pipeline.Update(func() {
		tables.Of(n.tables, intent.UnderlayDevices).Set(newUnderlayWays(n.d.cfg, n.d.log, nil).devices())
	})
	return n.tables.Pipeline.Compare(ctx)
}

// known are the changes that can be told without BGP; the others are counted.
func (n *node) known(rows []reconcile.Change, p *status.Plan) []status.Change {
	var out []status.Change
	unknown := map[string]int{}
	for _, c := range rows {
		switch {
		case c.Table == intent.Policies.Name || c.Table == intent.Announcements.Name:
		case c.Op == reconcile.OpDelete && c.Held:
			unknown[c.Table]++
		default:
			out = append(out, tables.ChangeOf(c))
		}
	}
	for _, t := range []string{intent.VTEPs.Name, intent.Routes.Name, intent.KernelRoutes.Name, intent.LearnedRoutes.Name} {
		if unknown[t] > 0 {
			p.Unknown = append(p.Unknown, unknownToBGP(t, unknown[t]))
		}
	}
	return out
}

// planAttachments is what would be attached to devices that there are or would be.
func (n *node) planAttachments(pinned *ebpf.Inspection, vxlan int, p *status.Plan) error {
	add := func(prog ebpf.Program, device string, ifindex int) error {
		c, err := pinned.Attachment(prog, device, ifindex)
		if c != nil {
			p.Changes = append(p.Changes, *c)
		}
		return err
	}
	if settings.Whole(n.d.cfg) {
		c, err := pinned.VTEPGuard()
		if err != nil {
			return err
		}
		if c != nil {
			p.Changes = append(p.Changes, *c)
		}
	} else if err := add(ebpf.FabricIn, kernel.FabricName, vxlan); err != nil {
		return err
	}
	bridges, _ := tables.Of(n.tables, intent.Bridges).Rows()
	for _, b := range slices.Sorted(maps.Keys(bridges)) {
		ifindex, _ := n.links.IfIndex(b)
		device, ok := n.links.Name(ifindex)
		if !ok {
			device = "the veth pair of " + string(b)
		}
		if err := add(ebpf.OverlayIn, device, ifindex); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) plannedRoutes() []status.PlannedRoute {
	wanted, _ := tables.Of(n.tables, intent.Announcements).Rows()
	ports := n.portNames()
	out := make([]status.PlannedRoute, 0, len(wanted))
	for k, a := range wanted {
		out = append(out, status.PlannedRoute{VNI: k.VNI, Prefix: k.Prefix, Gateway: cmp.Or(ports[a.Gateway], a.Gateway.String())})
	}
	slices.SortFunc(out, func(a, b status.PlannedRoute) int {
		return status.Route{VNI: a.VNI, Prefix: a.Prefix}.Compare(status.Route{VNI: b.VNI, Prefix: b.Prefix})
	})
	return out
}

// neighbors are their addresses, or the links that they are to be found on.
func (n *node) neighbors() []string {
	var out []string
	for _, b := range n.d.cfg.BGP.Neighbors {
		if b.Interface != "" {
			out = append(out, b.Interface)
			continue
		}
		out = append(out, b.Address.String())
	}
	return out
}
