package dryrun

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway/tunnel"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// node is the gateway that would start.
type node struct {
	*gateway.Gateway
	cfg *config.Config
	reg *status.Registry
	log *slog.Logger
	// tables only read.
	tables *tables.Tables
}

// plan fills in the changes of a gateway node, in the order of a start.
func (n node) plan(ctx context.Context, p *status.Plan) error {
	fabric, err := tunnel.Device(n.TunnelConfig(), nil).Check()
	switch {
	case settings.PerVRF(n.cfg) && fabric.IfIndex != 0:
		p.Changes = append(p.Changes, status.Change{Table: "device", Key: kernel.FabricName, Action: string(reconcile.OpDelete)})
	case settings.PerVRF(n.cfg):
	case len(fabric.Differs) > 0 || err != nil:
		p.Changes = append(p.Changes, fabricChange(fabric, err))
	}
	pinned, err := ebpf.Inspect(n.EBPF(fabric.IfIndex))
	if err != nil {
		return err
	}
	defer func() { _ = pinned.Close() }()
	changes, err := pinned.Changes()
	if err != nil {
		return err
	}
	p.Changes = append(p.Changes, changes...)
	n.tables = n.Dry(pinned)
	rows, err := n.tables.Pipeline.Compare(ctx)
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

// known are the changes that can be told without BGP; the others are counted.
func (n node) known(rows []reconcile.Change, p *status.Plan) []status.Change {
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
func (n node) planAttachments(pinned *ebpf.Inspection, vxlan int, p *status.Plan) error {
	add := func(prog ebpf.Program, device string, ifindex int) error {
		c, err := pinned.Attachment(prog, device, ifindex)
		if c != nil {
			p.Changes = append(p.Changes, *c)
		}
		return err
	}
	if settings.PerVRF(n.cfg) {
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
		ifindex, _ := n.Links().IfIndex(b)
		device, ok := n.Links().Name(ifindex)
		if !ok {
			device = "the veth pair of " + string(b)
		}
		if err := add(ebpf.OverlayIn, device, ifindex); err != nil {
			return err
		}
	}
	return nil
}

func (n node) plannedRoutes() []status.PlannedRoute {
	wanted, _ := tables.Of(n.tables, intent.Announcements).Rows()
	ports := n.PortNames()
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
func (n node) neighbors() []string {
	var out []string
	for _, b := range n.cfg.BGP.Neighbors {
		if b.Interface != "" {
			out = append(out, b.Interface)
			continue
		}
		out = append(out, b.Address.String())
	}
	return out
}
