package explain

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// explainDefault explains a path in the default VRF: one of its ends is exposed, the
// other one too or somewhere in the underlay.
func (e *Explainer) explainDefault(ctx context.Context, q status.Query) status.Explanation {
	n, there := e.gateway()
	var steps []status.Step
	src, dst := e.steps.ExplainExposed(q.Src), e.steps.ExplainExposed(q.Dst)
	switch {
	case src.Found && dst.Found:
		steps = append(steps, src, dst)
	case src.Found:
		steps = append(steps, src)
	case dst.Found:
		steps = append(steps, dst)
	default:
		steps = append(steps, src, dst)
	}
	if !there {
		steps = append(steps, e.role.IdleStep("Ask on the node where the VM or the gateway port is bound."))
		return status.NewExplanation(q, steps)
	}
	ok, err := tables.Of(n.Tables(), intent.VRFs).State(q.VRF)
	steps = append(steps, stepOf(status.LayerDataplane, "map vrfs: default VRF", ok, err, "", "Nothing is exposed without EVPN by this node."))
	if src.Found {
		steps = append(steps, n.explainEnd(q.Src)...)
	}
	if dst.Found {
		steps = append(steps, n.explainEnd(q.Dst)...)
	}
	if src.Found && !dst.Found {
		steps = append(steps, n.explainWayOut(q.Dst))
	}
	if dst.Found && !src.Found {
		steps = append(steps, n.explainWayIn(ctx, q.Dst)...)
	}
	return status.NewExplanation(q, steps)
}

// explainEnd looks for the rows of an exposed address.
func (n node) explainEnd(a netip.Addr) []status.Step {
	r, found := n.longest(intent.DefaultVRF, a)
	if !found {
		return []status.Step{{Layer: status.LayerDataplane, Object: "route to " + a.String(), Detail: "no route covers it (no_route)"}}
	}
	return n.explainSource(intent.DefaultVRF, a, r)
}

// explainWayOut looks for the host's route to an address of the underlay, and for the
// device by which packets may leave there.
func (n node) explainWayOut(a netip.Addr) status.Step {
	s := status.Step{Layer: status.LayerDataplane, Object: fmt.Sprintf("the host's route to %s", a),
		Hint: "Packets from exposed addresses leave by the host's main routing table, and only by exposure.devices: the links of the paths to the BGP neighbours, unless the configuration names others."}
	path, err := link.New(netns.Namespace{}).Towards(a)
	if err != nil {
		s.Detail = err.Error()
		return s
	}
	in, err := tables.Of(n.Tables(), intent.UnderlayDevices).State(path.Name)
	switch {
	case in:
		s.Found, s.Detail, s.Hint = true, "by "+path.Name, ""
	case err != nil:
		s.Detail = fmt.Sprintf("by %s, which has no program: %v", path.Name, err)
	default:
		s.Detail = fmt.Sprintf("by %s, which is no device of the underlay", path.Name)
	}
	return s
}

// explainWayIn looks for what brings packets for an address from the underlay here.
func (n node) explainWayIn(ctx context.Context, a netip.Addr) []status.Step {
	wanted, _ := tables.Of(n.Tables(), intent.UnderlayDevices).Rows()
	var in, out []string
	for name := range wanted {
		if ok, err := tables.Of(n.Tables(), intent.UnderlayDevices).State(name); ok {
			in = append(in, name)
		} else {
			out = append(out, fmt.Sprintf("%s: %v", name, err))
		}
	}
	slices.Sort(in)
	slices.Sort(out)
	devices := status.Step{Layer: status.LayerDataplane, Object: "devices of the underlay", Found: len(in) > 0,
		Detail: strings.Join(append(in, out...), ", "), Hint: "No device receives packets for the address: name one in exposure.devices."}
	if devices.Found {
		devices.Hint = ""
	}
	key := intent.NewHostKey(intent.DefaultVRF, a)
	ok, err := tables.Of(n.Tables(), intent.Announcements).State(key)
	told := stepOf(status.LayerBGP, "announcement of "+key.Prefix.String(), ok, err, "as plain unicast, with this node as next hop", "")
	family := bgp.FamilyOf(intent.DefaultVRF, key.Prefix)
	if s, err := n.Speaker().Status(ctx); ok && err == nil && !s.Carries(family) {
		told.Found, told.Detail = false, "no neighbour with a session takes routes of family "+family.String()
		told.Hint = "See 'sluicectl bgp neighbors': no session is up, or no neighbour has the family in bgp.neighbors[].families and enables it on its side."
	}
	return []status.Step{devices, told}
}
