package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/packet"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// Trace runs the live programs on a synthetic packet.
func (e *Explainer) Trace(ctx context.Context, r status.TraceRequest) (status.Trace, error) {
	if r.Port != "" {
		return e.traceTap(ctx, r)
	}
	g, err := e.role.Running()
	if err != nil {
		return status.Trace{Request: r}, err
	}
	return node{g, e}.trace(ctx, r)
}

// trace is for packets of a VRF.
func (n node) trace(ctx context.Context, r status.TraceRequest) (status.Trace, error) {
	out := status.Trace{Request: r, Decisions: []status.Decision{}}
	if !r.FromFabric.IsValid() {
		if steps, inside := n.inside(status.Query{VRF: r.VRF, Src: r.Src, Dst: r.Dst}); inside {
			last := steps[len(steps)-1]
			out.Verdict = status.InsideOVN
			out.Decisions = append(out.Decisions, status.Decision{Program: "none", Step: "ovn", Result: last.Object, Why: last.Detail})
			return out, nil
		}
	}
	if n.Carrier(r.VRF) == intent.PathKernel && !r.FromFabric.IsValid() {
		out.Verdict = status.OnKernelPath
		out.Decisions = append(out.Decisions, status.Decision{Program: "none", Step: "kernel",
			Result: fmt.Sprintf("the routing table of vrf-%s decides", r.VRF), Why: cmp.Or(n.whyRoute(r.VRF, r.Dst), "no route covers the destination")})
		return out, nil
	}
	req, err := n.traceRequest(r)
	if err != nil {
		return out, err
	}
	n.tracing.Lock() // the scratch map has one row
	defer n.tracing.Unlock()
	t, err := ebpf.OpenTracer(n.cfg.Dataplane.BPFFS, ebpf.Fabric)
	if err != nil {
		return out, err
	}
	defer func() { _ = t.Close() }()
	res, err := t.Trace(ctx, req)
	if err != nil {
		return out, err
	}
	for _, s := range res.Steps {
		out.Decisions = append(out.Decisions, status.Decision{Program: req.Program.String(), Step: s.What.String(), Result: s.String(), Why: n.why(ctx, r, s)})
		switch s.What {
		case ebpf.StepNextHop:
			out.VTEP, out.VNI = s.Addr, intent.VNI(s.Value)
		case ebpf.StepRedirect:
			if l, err := net.InterfaceByIndex(int(s.Value)); err == nil {
				out.Interface = l.Name
			}
		}
	}
	out.Packet = res.Frame
	switch reason := res.Dropped(); {
	case res.Passed:
		out.Verdict = status.OnToHost
	case reason == 0:
		out.Verdict = "redirect"
	case res.Redirected:
		out.Verdict, out.Drop = "reply", reason.String()
	default:
		out.Verdict, out.Drop = "drop", reason.String()
	}
	if out.Interface != kernel.FabricName {
		out.VTEP, out.VNI = netip.Addr{}, 0
	}
	return out, nil
}

// traceRequest makes the packet as it would come from OVN, from the fabric, or from
// the underlay: for the default VRF, where its source is not exposed here.
func (n node) traceRequest(r status.TraceRequest) (ebpf.TraceRequest, error) {
	spec := packet.Spec{Src: r.Src, Dst: r.Dst, Protocol: r.Protocol, SrcPort: r.SrcPort, DstPort: r.DstPort, Length: r.Length}
	req := ebpf.TraceRequest{Program: ebpf.OverlayIn}
	src, exposed := n.longest(r.VRF, r.Src)
	switch {
	case r.FromFabric.IsValid() && r.VRF == intent.DefaultVRF:
		return req, errors.New("no VTEP sends packets of the default VRF: they arrive from the underlay without VXLAN")
	case r.FromFabric.IsValid():
		req.Program, req.VTEP, req.VNI = ebpf.FabricIn, r.FromFabric, r.VRF
		spec.SrcMAC, spec.DstMAC = intent.MAC{0x02, 0, 0, 0, 0, 1}, n.Identity().RouterMAC
	case r.VRF == intent.DefaultVRF && (!exposed || src.Kind != intent.RouteLocal):
		nic, err := n.underlayNIC()
		if err != nil {
			return req, err
		}
		req.Program, req.IfIndex = ebpf.UnderlayIn, uint32(nic.Index)
		spec.SrcMAC, spec.DstMAC = intent.MAC{0x02, 0, 0, 0, 0, 1}, intent.MAC(nic.HardwareAddr)
	default:
		g, err := n.gatewayFor(r.VRF, r.Src)
		if err != nil {
			return req, err
		}
		ifindex, ok := n.Links().IfIndex(g.Bridge)
		if !ok {
			return req, fmt.Errorf("bridge %s: %w: it has no veth pair yet", g.Bridge, admin.ErrNotFound)
		}
		req.IfIndex, req.VLAN = uint32(ifindex), g.VLAN
		spec.SrcMAC, spec.DstMAC = g.MAC, n.cfg.Fabric.NextHopMAC
	}
	var err error
	req.Frame, err = packet.Build(spec)
	return req, err
}

// underlayNIC is a device of the underlay that is there.
func (n node) underlayNIC() (*net.Interface, error) {
	rows, _ := tables.Of(n.Tables(), intent.UnderlayDevices).Rows()
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if nic, err := net.InterfaceByName(name); err == nil && len(nic.HardwareAddr) == len(intent.MAC{}) {
			return nic, nil
		}
	}
	return nil, fmt.Errorf("no device of the underlay is there: %w", admin.ErrNotFound)
}

// gatewayFor is the gateway that a packet from src would come through: that of
// its route if that is local, else any of the VRF.
func (n node) gatewayFor(vni intent.VNI, src netip.Addr) (intent.GatewayKey, error) {
	if r, ok := n.longest(vni, src); ok && r.Kind == intent.RouteLocal {
		return r.Gateway, nil
	}
	gateways, _ := tables.Of(n.Tables(), intent.Gateways).Rows()
	for k, row := range gateways {
		if row.VNI == vni {
			return k, nil
		}
	}
	return intent.GatewayKey{}, fmt.Errorf("VRF %s: %w: no gateway port of it is served by this node; 'sluicectl explain' tells why", vni, admin.ErrNotFound)
}

// whyRoute names the route that an address has, and where it comes from.
func (n node) whyRoute(vni intent.VNI, a netip.Addr) string {
	r, ok := n.longest(vni, a)
	if !ok {
		return ""
	}
	switch r.Kind {
	case intent.RouteLocal:
		return fmt.Sprintf("route %s from OVN, through %s", r.Key, cmp.Or(n.PortNames()[r.Gateway], r.Gateway.String()))
	case intent.RouteRemote:
		return fmt.Sprintf("route %s from BGP, to %s", r.Key, r.NextHops)
	}
	return fmt.Sprintf("route %s from OVN: opted out, or behind NAT", r.Key)
}

// whyNoRoute is what BGP knows of a destination without a route; nothing where nobody
// announces it.
func (n node) whyNoRoute(ctx context.Context, r status.TraceRequest) string {
	steps, err := n.Speaker().Explain(ctx, status.Query{VRF: r.VRF, Src: r.Src, Dst: r.Dst})
	if err != nil || len(steps) == 0 || steps[len(steps)-1].Found {
		return ""
	}
	return " BGP: " + steps[len(steps)-1].Detail + "."
}

// why names the row behind a decision.
func (n node) why(ctx context.Context, r status.TraceRequest, s ebpf.Step) string {
	switch s.What {
	case ebpf.StepHost, ebpf.StepPrefix:
		return n.whyRoute(r.VRF, s.Addr)
	case ebpf.StepDrop:
		if drop.Reason(s.Value) == drop.NoRoute {
			return reasonOfDrop(s.Value) + n.whyNoRoute(ctx, r)
		}
		return reasonOfDrop(s.Value)
	case ebpf.StepRedirect, ebpf.StepFIB:
		if l, err := net.InterfaceByIndex(int(s.Value)); err == nil {
			return l.Name
		}
	}
	return ""
}
