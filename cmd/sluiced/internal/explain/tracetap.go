package explain

import (
	"context"
	"fmt"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/tapbalancing"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/packet"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// traceTap runs the programs of a VM's tap on a synthetic packet.
func (e *Explainer) traceTap(ctx context.Context, r status.TraceRequest) (status.Trace, error) {
	out := status.Trace{Request: r, Decisions: []status.Decision{}}
	m, err := e.tapOf(r.Port)
	if err != nil {
		return out, err
	}
	req := ebpf.TraceRequest{Program: ebpf.ClientIn, IfIndex: m.Tap.IfIndex, VLAN: m.Tap.VLAN}
	if r.ToVM {
		req.Program = ebpf.ClientOut
	}
	req.Frame, err = packet.Build(packet.Spec{SrcMAC: intent.MAC{0x02, 0, 0, 0, 0, 1}, DstMAC: intent.MAC{0x02, 0, 0, 0, 0, 2},
		Src: r.Src, Dst: r.Dst, Protocol: r.Protocol, SrcPort: r.SrcPort, DstPort: r.DstPort, Answer: r.ToVM, Length: r.Length})
	if err != nil {
		return out, err
	}
	e.tracing.Lock() // the scratch map has one row
	defer e.tracing.Unlock()
	t, err := ebpf.OpenTracer(owned.ClientPins(e.cfg.Dataplane.BPFFS), ebpf.Clients)
	if err != nil {
		return out, err
	}
	defer func() { _ = t.Close() }()
	res, err := t.Trace(ctx, req)
	if err != nil {
		return out, err
	}
	out.Packet, out.Interface = res.Frame, m.Tap.Name
	for _, s := range res.Steps {
		one := status.Decision{Program: req.Program.String(), Step: s.What.String(), Result: s.String()}
		switch s.What {
		case ebpf.StepDrop:
			one.Why = reasonOfDrop(s.Value)
		case ebpf.StepLeft:
			one.Why = m.Choice.Detail
		case ebpf.StepBackend, ebpf.StepAnswer:
			out.Becomes = intent.FormatEndpoint(s.Addr, uint16(s.Value))
		}
		out.Decisions = append(out.Decisions, one)
	}
	if len(out.Decisions) == 0 {
		out.Decisions = append(out.Decisions, status.Decision{Program: req.Program.String(), Step: "none", Result: "of no VIP: nothing is changed", Why: "switch " + m.Switch})
	}
	switch reason := res.Dropped(); {
	case reason != 0:
		out.Verdict, out.Drop = "drop", reason.String()
	case res.Passed:
		out.Verdict = status.OnTap
	default:
		out.Verdict = "reply"
	}
	return out, nil
}

// tapOf finds a VM that has a tap for programs, on a switch with VIPs.
func (e *Explainer) tapOf(port string) (m tapbalancing.VM, err error) {
	if !e.cfg.LoadBalancing.OnTaps() {
		return m, fmt.Errorf("nothing is balanced on taps (loadBalancing.clients): %w", admin.ErrNotFound)
	}
	all := e.balancing.VMs()
	at := slices.IndexFunc(all, func(m tapbalancing.VM) bool { return m.Port == port })
	switch {
	case at < 0:
		return m, fmt.Errorf("port %s: %w: no VM of that name is on this node and on a switch with VIPs; 'sluicectl lb vms' lists them", port, admin.ErrNotFound)
	case all[at].Tap == (intent.Tap{}):
		return m, fmt.Errorf("port %s: %w: it has no tap for programs: %s", port, admin.ErrNotFound, all[at].Choice.Detail)
	}
	return all[at], nil
}
