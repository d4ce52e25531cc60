package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// VRFs lists the VRFs.
func (r *Report) VRFs(ctx context.Context) ([]status.VRF, error) {
	return ofNode(r, []status.VRF{}, func(n node) ([]status.VRF, error) { return n.vrfs(ctx) })
}

// VRF is one VRF with everything in it.
func (r *Report) VRF(ctx context.Context, vni intent.VNI) (status.VRF, error) {
	n, err := r.running()
	if err != nil {
		return status.VRF{}, err
	}
	return n.vrf(ctx, vni)
}

// vrfs lists the VRFs with their traffic.
func (n node) vrfs(ctx context.Context) ([]status.VRF, error) {
	traffic, err := n.Traffic()
	if err != nil {
		return nil, err
	}
	wanted, actual := tables.Of(n.Tables(), intent.VRFs).Rows()
	policies, _ := tables.Of(n.Tables(), intent.Policies).Rows()
	rows := make(map[intent.VNI]*status.VRF, len(wanted))
	for vni, v := range wanted {
		p, t := policies[vni], traffic[vni]
		row := &status.VRF{VNI: vni, Index: v.Index, RD: fmt.Sprintf("%s:%d", n.Identity().RouterID, v.Index),
			Import: words(p.Import), Export: words(p.Export), AutoImport: p.AutoImport,
			ToFabric: t.ToFabric.Status(), FromFabric: t.FromFabric.Status()}
		if vni == intent.DefaultVRF {
			row.RD = "" // its routes have none
		}
		row.State, row.StateReason, row.Error = tables.StateOf(tables.Of(n.Tables(), intent.VRFs).State(vni))
		c := n.Choice(vni)
		row.Path, row.Reason, row.ReasonDetail = n.Carrier(vni).String(), c.Reason, c.Detail
		if row.Path != v.Path.String() {
			row.Reason, row.ReasonDetail = reason.PathChanging, strings.TrimSuffix(fmt.Sprintf("to path %s (%s): %s", v.Path, c.Reason, c.Detail), ": ")
			if err := n.kernelObstacle(vni); err != nil && v.Path == intent.PathKernel {
				row.State, row.StateReason, row.Error = tables.StateOf(false, err)
			}
		}
		rows[vni] = row
	}
	if err := n.addImports(ctx, rows); err != nil {
		return nil, err
	}
	n.addMissing(rows)
	addHeldVRFs(rows, actual, traffic, n.Tables().HeldText(tables.Of(n.Tables(), intent.VRFs)))
	for _, r := range n.routes(0) {
		row := rows[r.VNI]
		switch {
		case row == nil:
		case r.Kind == intent.RouteLocal.String():
			row.Local++
		case r.Kind == intent.RouteRemote.String():
			row.Remote++
		}
	}
	n.addWithheld(rows)
	out := make([]status.VRF, 0, len(rows))
	for _, r := range rows {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b status.VRF) int { return cmp.Compare(a.VNI, b.VNI) })
	return out, nil
}

// addMissing tells of what somebody else makes and a gateway port of a VRF waits for.
func (n node) addMissing(rows map[intent.VNI]*status.VRF) {
	type thing struct{ kind, key string }
	missing := map[thing]status.Object{}
	for _, o := range n.reg.Objects(func(o status.Object) bool { return o.Source == tables.WaitReports }) {
		missing[thing{o.Kind, o.Key}] = o
	}
	if len(missing) == 0 {
		return
	}
	gateways, _ := tables.Of(n.Tables(), intent.Gateways).Rows()
	for k, g := range gateways {
		for _, what := range []thing{{"bridge", string(k.Bridge)}, {"gateway", g.LogicalPort}} {
			o, ok := missing[what]
			if row := rows[g.VNI]; ok && row != nil && row.State == status.OK {
				row.State, row.StateReason, row.Error = o.State, o.Reason, o.Error
			}
		}
	}
}

// addHeldVRFs adds those that only the maps have: they forward, although nothing
// asks for them now.
func addHeldVRFs(rows map[intent.VNI]*status.VRF, actual map[intent.VNI]intent.VRF, traffic map[intent.VNI]ebpf.VRFCounters, why string) {
	for vni, v := range actual {
		if rows[vni] == nil {
			t := traffic[vni]
			rows[vni] = &status.VRF{VNI: vni, Index: v.Index, State: status.Pending, StateReason: reason.Held, Error: why, Path: v.Path.String(),
				ToFabric: t.ToFabric.Status(), FromFabric: t.FromFabric.Status()}
		}
	}
}

func noVRF(vni intent.VNI) error {
	return fmt.Errorf("VRF %s: %w on this node; 'sluicectl status' shows gateways with errors, 'sluicectl explain' why packets are not forwarded", vni, admin.ErrNotFound)
}

// lacks is the error of a VRF that there is none of; g may be nil.
func lacks(g *gateway.Gateway, vni intent.VNI) error {
	if g != nil {
		wanted, actual := tables.Of(g.Tables(), intent.VRFs).Rows()
		if _, ok := wanted[vni]; ok {
			return nil
		}
		if _, ok := actual[vni]; ok {
			return nil
		}
	}
	return noVRF(vni)
}

func words(s intent.RouteTargets) []string {
	var out []string
	for _, rt := range s.All() {
		out = append(out, rt.String())
	}
	return out
}

// kernelObstacle is why a part of a VRF's kernel path cannot be built; nil where none
// is known that does not merely wait.
func (n node) kernelObstacle(vni intent.VNI) error {
	if ok, err := tables.Of(n.Tables(), intent.KernelVRFs).State(vni); !ok && err != nil && !errors.Is(err, reconcile.ErrNotReady) {
		return err
	}
	gateways, _ := tables.Of(n.Tables(), intent.KernelGateways).Rows()
	for k, g := range gateways {
		if g.VNI != vni {
			continue
		}
		if ok, err := tables.Of(n.Tables(), intent.KernelGateways).State(k); !ok && err != nil && !errors.Is(err, reconcile.ErrNotReady) {
			return err
		}
	}
	return nil
}

// vrf is one VRF with everything in it.
func (n node) vrf(ctx context.Context, vni intent.VNI) (status.VRF, error) {
	all, err := n.vrfs(ctx)
	if err != nil {
		return status.VRF{}, err
	}
	i := slices.IndexFunc(all, func(v status.VRF) bool { return v.VNI == vni })
	if i < 0 {
		return status.VRF{}, noVRF(vni)
	}
	v := all[i]
	if v.Routes, err = n.routesAndSessions(ctx, vni); err != nil {
		return status.VRF{}, err
	}
	names := map[string]bool{vni.String(): true}
	gateways, _ := tables.Of(n.Tables(), intent.Gateways).Rows()
	served, _ := tables.Of(n.Tables(), intent.ServedNextHops).Rows()
	for k, g := range gateways {
		if g.VNI != vni {
			continue
		}
		e := status.GatewayEntry{LogicalPort: g.LogicalPort, Kind: g.Kind.String(), Bridge: string(k.Bridge), VLAN: k.VLAN, MAC: k.MAC}
		for _, a := range []netip.Addr{g.Addr4, g.Addr6} {
			if a.IsValid() {
				e.Addresses = append(e.Addresses, a)
			}
		}
		e.State, _, _ = tables.StateOf(tables.Of(n.Tables(), intent.Gateways).State(k))
		for sk, s := range served {
			if sk.Gateway == k && s.Answer {
				e.Served = append(e.Served, sk.Prefix)
			}
		}
		slices.SortFunc(e.Served, func(a, b netip.Prefix) int { return cmp.Compare(a.String(), b.String()) })
		names[g.LogicalPort] = true
		v.Gateways = append(v.Gateways, e)
	}
	slices.SortFunc(v.Gateways, func(a, b status.GatewayEntry) int { return cmp.Compare(a.LogicalPort, b.LogicalPort) })
	v.Objects = n.reg.Objects(func(o status.Object) bool {
		return (o.State != status.OK || o.Reason == reason.Standby) && names[o.Key]
	})
	return v, nil
}

// addWithheld tells of VRFs whose routes the node as a whole does not announce.
func (n node) addWithheld(rows map[intent.VNI]*status.VRF) {
	for vni, row := range rows {
		if state, why, text := n.Withheld(vni); why != "" && row.State == status.OK && row.Local > 0 {
			row.State, row.StateReason, row.Error = state, why, text
		}
	}
}
