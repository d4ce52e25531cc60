// Package explain explains why a packet goes where it goes, or does not: "sluicectl explain" joins
// what each layer says, "sluicectl trace" runs the live programs.
package explain

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/role"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/taps/balancing"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/translation"
	"github.com/ovn-sluice/sluice/controlplane/evpn"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// Explainer answers. It is safe for concurrent use.
type Explainer struct {
	cfg       *config.Config
	role      *role.Role
	steps     *translation.Translation
	follower  *ovn.Follower
	balancing *balancing.Balancing
	reg       *status.Registry
	log       *slog.Logger

	tracing sync.Mutex // the scratch map of a plane's trace has one row
}

// New makes it.
func New(cfg *config.Config, r *role.Role, steps *translation.Translation, follower *ovn.Follower, b *balancing.Balancing, reg *status.Registry, log *slog.Logger) *Explainer {
	return &Explainer{cfg: cfg, role: r, steps: steps, follower: follower, balancing: b, reg: reg, log: log}
}

// node is the gateway as explanations see it.
type node struct {
	*gateway.Gateway
	*Explainer
}

// gateway is that at work; false: there is none.
func (e *Explainer) gateway() (n node, there bool) {
	g, err := e.role.Running()
	return node{g, e}, err == nil
}

func reasonOfDrop(v uint32) string { return drop.Reason(v).Explain() + " " + drop.Reason(v).Act() }

// Explain explains a path, with notes.
func (e *Explainer) Explain(ctx context.Context, q status.Query) (status.Explanation, error) {
	out, err := e.explain(ctx, q)
	if err == nil {
		out.Notes = append(out.Notes, e.vipNotes(q)...)
	}
	return out, err
}

// vipNotes tells which of the ends are VIPs: packets to and from these take other paths.
func (e *Explainer) vipNotes(q status.Query) (notes []string) {
	type vip struct {
		addr netip.Addr
		of   string
	}
	var all []vip
	add := func(k intent.VIPKey, of string) {
		if q.VRF == 0 || q.VRF == k.VNI {
			all = append(all, vip{k.Addr, of})
		}
	}
	if _, there := e.gateway(); there {
		for _, b := range e.steps.Balanced() {
			add(b.VIP.Key, b.Balancer)
		}
	}
	if e.balancing.Running() != nil {
		for _, b := range e.balancing.Balanced() {
			add(b.VIP.Key, b.Balancer)
		}
	}
	for _, end := range []netip.Addr{q.Src, q.Dst} {
		var names []string
		for _, v := range all {
			if v.addr == end {
				names = append(names, v.of)
			}
		}
		slices.Sort(names)
		if names = slices.Compact(names); len(names) > 0 {
			notes = append(notes, fmt.Sprintf("%s is an address of load balancer %s: 'sluicectl lb explain' follows packets to it", end, strings.Join(names, ", ")))
		}
	}
	return notes
}

// explain joins what each layer says of a path, in the order in which a packet meets them.
func (e *Explainer) explain(ctx context.Context, q status.Query) (status.Explanation, error) {
	if q.VRF == intent.DefaultVRF {
		return e.explainDefault(ctx, q), nil
	}
	if steps, inside := e.inside(q); inside {
		out := status.NewExplanation(q, steps)
		out.InsideOVN = true
		return out, nil
	}
	var steps []status.Step
	var where evpn.Where
	e.follower.View(func(rows *ovn.Rows) { steps, where = e.steps.Explain(rows, q) })
	if where != evpn.Here {
		steps = e.elsewhere(ctx, q, where, steps)
	}
	n, there := e.gateway()
	if !there {
		steps = append(steps, e.role.IdleStep("Ask on the node where the gateway port is bound."))
		return status.NewExplanation(q, steps), nil
	}
	steps = append(steps, n.explainDataplane(q)...)
	forwarded := !slices.ContainsFunc(steps, func(s status.Step) bool {
		return !s.Found && (s.Layer == status.LayerDataplane || s.Layer == status.LayerOVS)
	})
	more, err := n.Speaker().Explain(ctx, q)
	steps = append(steps, more...)
	n.explainWithheld(q, steps)
	alone := noSession(steps)
	if alone {
		blameSession(steps)
	}
	if forwarded {
		keep(steps, e.steps.OVNInSync(), alone)
	}
	out := status.NewExplanation(q, steps)
	out.Notes = n.fabricNotes(steps)
	return out, err
}

// inside explains a path on which OVN alone forwards.
func (e *Explainer) inside(q status.Query) (steps []status.Step, inside bool) {
	e.follower.View(func(rows *ovn.Rows) { steps, inside = e.steps.Inside(rows, q) })
	return steps, inside
}

// elsewhere tells which chassis has the gateway port of a VNI, where this node has
// none of it with a network of either end. What cannot be asked is not told.
func (e *Explainer) elsewhere(ctx context.Context, q status.Query, where evpn.Where, steps []status.Step) []status.Step {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	gateways, err := e.follower.GatewaysWith(ctx, evpn.KeyVNI, q.VRF.String())
	if err != nil {
		e.log.Debug("the gateway ports of other nodes cannot be read", "vni", q.VRF, "error", err)
		return steps
	}
	s := evpn.Elsewhere(q, gateways)
	if len(gateways) == 0 && where == evpn.OtherVNI { // the routers that may be meant come first
		return append(steps, s)
	}
	return append([]status.Step{s}, steps...)
}

// bgpSession is the object of that step.
const bgpSession = "BGP session"

// blameSession has a missing route to the destination lead to the missing session: without one
// nobody announces it here.
func blameSession(steps []status.Step) {
	for i := range steps {
		if s := &steps[i]; !s.Found && strings.HasPrefix(s.Object, "route to destination ") {
			s.Hint = "No neighbour has a BGP session with EVPN: see the step on BGP sessions, and 'sluicectl bgp neighbors'."
		}
	}
}

// noSession tells whether no neighbour has a BGP session with EVPN.
func noSession(steps []status.Step) bool {
	return slices.ContainsFunc(steps, func(s status.Step) bool { return s.Object == bgpSession && !s.Found })
}

// keep marks what is missing and does not cut a path whose rows are all in the
// data plane: a session of BGP, what it brought and what neighbours may still have
// of this node (alone: no session is left), and all that OVN asks for while its databases are not in sync.
func keep(steps []status.Step, ovnInSync, alone bool) {
	for i := range steps {
		s := &steps[i]
		imported := s.Layer == status.LayerBGP && (s.Object == bgpSession || strings.HasPrefix(s.Object, "route to ") || alone && strings.HasPrefix(s.Object, "announcement of "))
		fromOVN := s.Layer == status.LayerOVN || s.Layer == status.LayerIntent || s.Layer == status.LayerBGP
		s.Stale = !s.Found && (imported || fromOVN && !ovnInSync)
	}
}

// explainDataplane looks for the programmed rows of a path.
func (n node) explainDataplane(q status.Query) []status.Step {
	var steps []status.Step
	add := func(layer status.Layer, object string, ok bool, err error, detail, hint string) {
		steps = append(steps, stepOf(layer, object, ok, err, detail, hint))
	}
	ok, err := tables.Of(n.Tables(), intent.VRFs).State(q.VRF)
	detail, hint := "", ""
	if _, wanted := tables.Of(n.Tables(), intent.VRFs).Wanted(q.VRF); !wanted {
		hint = "No gateway port on this node carries the VNI."
	}
	path := n.Carrier(q.VRF)
	if now, carries := n.Tables().Path(q.VRF); !ok && carries {
		ok, detail = true, fmt.Sprintf("carried on path %s: %v", now, err)
	}
	add(status.LayerDataplane, fmt.Sprintf("map vrfs: VNI %s", q.VRF), ok, err, detail, hint)
	routes := n.Tables().RoutesOn(path)
	if path == intent.PathKernel {
		ok, err := tables.Of(n.Tables(), intent.KernelVRFs).State(q.VRF)
		add(status.LayerDataplane, fmt.Sprintf("devices of VRF %s on the kernel path", q.VRF), ok, err, "", "")
	}
	src, found := n.longest(q.VRF, q.Src)
	if !found || src.Kind != intent.RouteLocal {
		add(status.LayerDataplane, fmt.Sprintf("route to source %s", q.Src), false, nil, "no local route covers it, so packets from it are dropped (source_not_exposed)", "Expose its subnet, or ask on the node where its gateway port is bound.")
	} else {
		steps = append(steps, n.explainSource(q.VRF, q.Src, src)...)
	}
	dst, found := n.longest(q.VRF, q.Dst)
	if !found {
		add(status.LayerDataplane, fmt.Sprintf("route to destination %s", q.Dst), false, nil, "no route covers it (no_route)", "No node announces it with a route target that this VRF imports, or its announcement cannot be used: see the route in BGP.")
		return steps
	}
	ok, err = routes.State(dst.Key)
	detail = dst.Kind.String()
	_, wanted := routes.Wanted(dst.Key)
	if dst.Kind == intent.RouteRemote {
		detail += ", " + dst.NextHops.String()
	}
	if !wanted {
		ok, detail = true, detail+", "+n.Tables().HeldText(routes)
	}
	add(status.LayerDataplane, "route "+dst.Key.String(), ok && dst.Kind != intent.RouteBlock, err, detail, "The address was opted out, or is behind NAT: see 'sluicectl status'.")
	return steps
}

// stepOf is the step of a row that is there, or is not for a reason.
func stepOf(layer status.Layer, object string, ok bool, err error, detail, hint string) status.Step {
	if err != nil && !ok {
		detail = err.Error()
	}
	if ok {
		hint = ""
	}
	return status.Step{Layer: layer, Object: object, Found: ok, Detail: detail, Hint: hint}
}

// explainSource looks for what brings packets of an address from OVN to this node,
// and back: src is its route.
func (n node) explainSource(vni intent.VNI, a netip.Addr, src intent.Route) []status.Step {
	var steps []status.Step
	add := func(layer status.Layer, object string, ok bool, err error, detail, hint string) {
		steps = append(steps, stepOf(layer, object, ok, err, detail, hint))
	}
	path := n.Carrier(vni)
	routes := n.Tables().RoutesOn(path)
	ok, err := routes.State(src.Key)
	add(status.LayerDataplane, "route "+src.Key.String(), ok, err, "local, through "+src.Gateway.String(), "")
	ok, err = tables.Of(n.Tables(), intent.Bridges).State(src.Gateway.Bridge)
	add(status.LayerDataplane, "veth pair of bridge "+string(src.Gateway.Bridge), ok, err, "", "")
	ok, err = tables.Of(n.Tables(), intent.Gateways).State(src.Gateway)
	add(status.LayerDataplane, "gateway "+src.Gateway.String(), ok, err, "", "")
	if path == intent.PathKernel {
		ok, err = tables.Of(n.Tables(), intent.KernelGateways).State(src.Gateway)
		add(status.LayerDataplane, fmt.Sprintf("gateway %s on the kernel path", src.Gateway), ok, err, "", "")
	}
	back := intent.SteeringKey{Gateway: src.Gateway, Kind: intent.SteerToOVN}
	flow := func(k intent.SteeringKey, hint string) {
		ok, err := tables.Of(n.Tables(), intent.SteeringFlows).State(k)
		detail := ""
		if !ok && n.Tables().Steered(k) {
			ok, detail = true, fmt.Sprintf("as the VRF's present path needs it: %v", err)
		}
		add(status.LayerOVS, "flow "+k.String(), ok, err, detail, hint)
	}
	flow(back, "")
	out, _ := n.Tables().SourceFlow(vni, src.Gateway, netip.PrefixFrom(a, a.BitLen()))
	flow(out, "Without it packets of this source leave by the provider network.")
	return steps
}

// longest is the longest match among the routes of any kind that are wanted, or
// that are there still.
func (n node) longest(vni intent.VNI, a netip.Addr) (intent.Route, bool) {
	wanted, actual := n.Tables().RoutesOn(n.Carrier(vni)).Rows()
	return longestOf(wanted, actual, vni, a)
}

func longestOf(wanted, actual map[intent.RouteKey]intent.Route, vni intent.VNI, a netip.Addr) (intent.Route, bool) {
	return intent.LongestMatch(netip.PrefixFrom(a, a.BitLen()), func(p netip.Prefix) (intent.Route, bool) {
		k := intent.NewRouteKey(vni, p)
		if r, ok := wanted[k]; ok {
			return r, true
		}
		r, ok := actual[k]
		return r, ok
	})
}
