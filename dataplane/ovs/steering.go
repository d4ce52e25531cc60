package ovs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// Steering is the driver of intent.Steering: flows on provider bridges.
type Steering struct {
	sw *Switch
}

var _ reconcile.Driver[intent.SteeringKey, intent.Steering] = (*Steering)(nil)

// NewSteering does no I/O.
func NewSteering(sw *Switch) *Steering { return &Steering{sw: sw} }

// flows are the flows of a row. A row that steers IPv6 sources has two more,
// which leave neighbour discovery between OVN and a physical router alone.
func (s *Steering) flows(b Bridge, row intent.Steering) ([]flow, error) {
	ours, ok := b.ours()
	if !ok || ours.Number == 0 {
		return nil, fmt.Errorf("bridge %s has no port of Sluice's yet: %w", b.Name, reconcile.ErrNotReady)
	}
	name := s.patchName(row.Localnet)
	patch, ok := b.port(name)
	if !ok || patch.Number == 0 {
		return nil, fmt.Errorf("bridge %s has no patch port %s yet: %w", b.Name, name, reconcile.ErrMissing)
	}
	k := row.Key
	if k.Gateway.MAC.IsZero() || k.Gateway.VLAN > 4094 {
		return nil, fmt.Errorf("gateway %s cannot be matched", k.Gateway)
	}
	inner := ours // where what comes from OVN goes
	if row.Path == intent.PathKernel {
		if inner, ok = b.vrfPort(row.VNI, k.Gateway.VLAN); !ok || inner.Number == 0 {
			return nil, fmt.Errorf("bridge %s has no port of VRF %s yet: %w", b.Name, row.VNI, reconcile.ErrNotReady)
		}
	}
	from := match{inPort: patch.Number, vlan: int(k.Gateway.VLAN), src: k.Gateway.MAC, prefix: k.Prefix, protocol: k.Protocol, port: k.Port}
	out := action{kind: actionOutput, output: ours.Number}
	with := func(priority int, kind matchKind, a action) flow {
		m := from
		m.priority, m.kind = priority, kind
		return flow{m, a}
	}
	v4 := k.Prefix.Addr().Is4()
	switch {
	case k.Kind == intent.SteerToOVN && !k.Prefix.IsValid():
		return toOVN(row, ours, inner, patch), nil
	case !k.Prefix.IsValid() || k.Prefix != k.Prefix.Masked():
	case k.Kind == intent.SteerARP && v4:
		return []flow{with(priorityAsk, matchARP, out)}, nil
	case k.Kind == intent.SteerND && !v4:
		return []flow{with(priorityAsk, matchNS, out)}, nil
	case k.Kind == intent.SteerRouted && !row.NextHopMAC.IsZero():
		from.dst = row.NextHopMAC
		return []flow{with(prioritySteer, matchIP, out)}, nil
	case k.Kind == intent.SteerAnswer && !row.NextHopMAC.IsZero() && row.Path == intent.PathEBPF && k.Protocol != 0:
		out.setDst = row.NextHopMAC
		return []flow{with(prioritySteer, matchAnswer, out)}, nil
	case k.Kind == intent.SteerSource && !row.NextHopMAC.IsZero():
		out.setDst = row.NextHopMAC
		if row.Path == intent.PathKernel {
			out.output, out.pop = inner.Number, k.Gateway.VLAN != 0
		}
		flows := []flow{with(prioritySteer, matchIP, out)}
		if !v4 {
			normal := action{kind: actionNormal}
			flows = append(flows, with(priorityDiscovery, matchNSFrom, normal), with(priorityDiscovery, matchNAFrom, normal))
		}
		return flows, nil
	}
	return nil, fmt.Errorf("steering %s is not a flow", k)
}

// toOVN are the flows into OVN: from our port, and on the kernel path from the VRF's.
func toOVN(row intent.Steering, ours, inner, patch Port) []flow {
	k := row.Key.Gateway
	flows := []flow{{
		match{priority: prioritySteer, inPort: ours.Number, vlan: int(k.VLAN), dst: k.MAC},
		action{kind: actionOutput, output: patch.Number},
	}}
	if row.Path == intent.PathKernel {
		flows = append(flows, flow{
			match{priority: prioritySteer, inPort: inner.Number, dst: k.MAC},
			action{kind: actionOutput, output: patch.Number, push: int(k.VLAN)},
		})
	}
	return flows
}

func (s *Steering) patchName(localnet string) string {
	return "patch-" + localnet + "-to-" + s.sw.integrationBridge()
}

// key is the row that a flow belongs to, whatever its port numbers are.
func key(b Bridge, f flow) (intent.SteeringKey, bool) {
	k := intent.SteeringKey{
		Gateway: intent.GatewayKey{Bridge: intent.BridgeKey(b.Name), MAC: f.match.src}, Prefix: f.match.prefix,
		Protocol: f.match.protocol, Port: f.match.port,
	}
	if f.match.vlan < 0 {
		return k, false
	}
	k.Gateway.VLAN = uint16(f.match.vlan)
	if p, ok := b.numbered(f.match.inPort); ok && p.VRF.VNI != 0 {
		// The VRF's end has no tags.
		k.Gateway.VLAN = p.VRF.VLAN
	}
	switch f.match.kind {
	case matchAll:
		k.Kind, k.Gateway.MAC = intent.SteerToOVN, f.match.dst
	case matchARP:
		k.Kind = intent.SteerARP
	case matchNS:
		k.Kind = intent.SteerND
	case matchAnswer:
		k.Kind = intent.SteerAnswer
	case matchIP, matchNSFrom, matchNAFrom:
		k.Kind = intent.SteerSource
		if !f.match.dst.IsZero() {
			k.Kind = intent.SteerRouted
		}
	}
	return k, !k.Gateway.MAC.IsZero()
}

// value reads the row back from its flows: the zero value unless they are
// exactly what Apply would write now.
func (s *Steering) value(b Bridge, k intent.SteeringKey, flows []flow) intent.Steering {
	row := intent.Steering{Key: k}
	patch := 0
	for _, f := range flows {
		inner := f.action.output // the port of ours
		switch {
		case k.Kind == intent.SteerToOVN:
			patch, inner = f.action.output, f.match.inPort
		case f.action.kind == actionOutput:
			patch, row.NextHopMAC = f.match.inPort, f.action.setDst
			if k.Kind == intent.SteerRouted {
				row.NextHopMAC = f.match.dst
			}
		default:
			continue
		}
		if p, ok := b.numbered(inner); ok && p.VRF.VNI != 0 {
			row.Path, row.VNI = intent.PathKernel, p.VRF.VNI
		}
	}
	for _, p := range b.Ports {
		rest, ok := strings.CutPrefix(p.Name, "patch-")
		localnet, ok2 := strings.CutSuffix(rest, "-to-"+s.sw.integrationBridge())
		if ok && ok2 && p.Number == patch {
			row.Localnet = localnet
		}
	}
	want, err := s.flows(b, row)
	if err != nil || !sameFlows(want, flows) {
		return intent.Steering{}
	}
	return row
}

// numbered is the port with an OpenFlow number.
func (b Bridge) numbered(n int) (Port, bool) {
	return b.find(func(p Port) bool { return n != 0 && p.Number == n })
}

func sameFlows(a, b []flow) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(f flow) bool { return !slices.Contains(b, f) })
}

// byKey are the flows of each row, and the matches of those with our cookie that no
// row could have.
func byKey(b Bridge, d dumped) (map[intent.SteeringKey][]flow, []string) {
	out, unknown := make(map[intent.SteeringKey][]flow), d.unknown
	for _, f := range d.flows {
		if k, ok := key(b, f); ok {
			out[k] = append(out[k], f)
		} else {
			unknown = append(unknown, f.match.format())
		}
	}
	return out, unknown
}

// List reads the flows of every bridge but the integration bridge. A bridge
// without a port of Sluice's that cannot be asked has no flows of ours.
func (s *Steering) List(ctx context.Context) (map[intent.SteeringKey]intent.Steering, error) {
	bridges, err := s.sw.Bridges()
	if err != nil {
		return nil, err
	}
	out := make(map[intent.SteeringKey]intent.Steering)
	integration := s.sw.integrationBridge()
	for _, b := range bridges {
		if b.Name == integration {
			continue
		}
		d, err := s.sw.dump(ctx, b.Name, cookieSteering)
		if err != nil {
			if _, used := b.ours(); used || ctx.Err() != nil {
				return nil, fmt.Errorf("listing steering flows: %w", err)
			}
			continue
		}
		flows, _ := byKey(b, d)
		for k, f := range flows {
			out[k] = s.value(b, k, f)
		}
	}
	return out, nil
}

// Apply writes all rows of a bridge as one bundle.
func (s *Steering) Apply(ctx context.Context, rows []reconcile.Row[intent.SteeringKey, intent.Steering]) []error {
	errs := make([]error, len(rows))
	for bridge, indices := range group(rows, func(r reconcile.Row[intent.SteeringKey, intent.Steering]) intent.SteeringKey { return r.Key }) {
		b, d, err := s.current(ctx, bridge)
		there, strays := byKey(b, d)
		var batch []change
		for _, i := range indices {
			if errs[i] = reconcile.Unchanged(err); err != nil {
				continue
			}
			want, err := s.flows(b, rows[i].Value)
			if err == nil {
				err = d.collision(want)
			}
			if errs[i] = reconcile.Unchanged(err); err == nil {
				lines := append(replacedBy(strays, rows[i].Key), difference(there[rows[i].Key], want)...)
				batch = append(batch, change{i, lines})
			}
		}
		s.commit(ctx, b, batch, errs)
	}
	return reconcile.Results(errs)
}

// Delete removes all rows of a bridge as one bundle.
func (s *Steering) Delete(ctx context.Context, keys []intent.SteeringKey) []error {
	errs := make([]error, len(keys))
	for bridge, indices := range group(keys, func(k intent.SteeringKey) intent.SteeringKey { return k }) {
		b, d, err := s.current(ctx, bridge)
		if errors.Is(err, errNoBridge) {
			continue // the bridge is gone, and its flows with it
		}
		there, _ := byKey(b, d)
		var batch []change
		for _, i := range indices {
			if errs[i] = reconcile.Unchanged(err); err == nil {
				batch = append(batch, change{i, difference(there[keys[i]], nil)})
			}
		}
		s.commit(ctx, b, batch, errs)
	}
	return reconcile.Results(errs)
}

// current reads a bridge's flows.
func (s *Steering) current(ctx context.Context, bridge intent.BridgeKey) (Bridge, dumped, error) {
	b, err := s.sw.Bridge(bridge)
	if errors.Is(err, errNoBridge) {
		// The bridge's own row says what is missing.
		return b, dumped{}, fmt.Errorf("bridge %s %w: %w", bridge, errNoBridge, reconcile.ErrNotReady)
	}
	if err != nil {
		return b, dumped{}, err
	}
	d, err := s.sw.dumpAll(ctx, b.Name, cookieSteering)
	return b, d, err
}

// change is the lines of one row of the caller's.
type change struct {
	index int
	lines []string
}

// difference removes first: the same match may get another action.
func difference(there, want []flow) []string {
	var lines []string
	for _, f := range there {
		if !slices.Contains(want, f) {
			lines = append(lines, deleteLine(cookieSteering, f.match.format()))
		}
	}
	for _, f := range want {
		if !slices.Contains(there, f) {
			lines = append(lines, addLine(cookieSteering, f))
		}
	}
	return lines
}

// commit sends one bundle. If it is refused, halves of it are tried, so that one
// bad row stops no other.
func (s *Steering) commit(ctx context.Context, b Bridge, batch []change, errs []error) {
	var lines []string
	for _, c := range batch {
		lines = append(lines, c.lines...)
	}
	err := s.sw.bundle(ctx, b.Name, lines)
	if err == nil || len(batch) == 0 {
		return
	}
	// A bridge that does not answer in time would not do so for a half either.
	hangs := errors.Is(err, context.DeadlineExceeded)
	if len(batch) == 1 || hangs || ctx.Err() != nil || !s.sw.reachable(b.Name) {
		for _, c := range batch {
			errs[c.index] = fmt.Errorf("writing flows of bridge %s: %w", b.Name, err)
		}
		return
	}
	half := len(batch) / 2
	s.commit(ctx, b, batch[:half], errs)
	s.commit(ctx, b, batch[half:], errs)
}

func group[T any](items []T, k func(T) intent.SteeringKey) map[intent.BridgeKey][]int {
	out := make(map[intent.BridgeKey][]int)
	for i, item := range items {
		b := k(item).Gateway.Bridge
		out[b] = append(out[b], i)
	}
	return out
}

// used names the bridges that have a port of Sluice's.
func (s *Switch) used() []string {
	ports, err := s.OurPorts()
	if err != nil {
		return nil
	}
	var names []string
	for _, k := range slices.Sorted(maps.Keys(ports)) {
		names = append(names, string(k))
	}
	return names
}
