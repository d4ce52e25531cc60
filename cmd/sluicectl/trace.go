package main

import (
	"io"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/pkg/output"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func traceCommand(o *options) *cobra.Command {
	var vrf, proto, from string
	req := status.TraceRequest{}
	c := &cobra.Command{
		Use:   "trace {--vrf VNI|--port PORT} SRC DST",
		Short: "Run the live programs on a synthetic packet and tell every decision",
		Long: `Run the live programs on a synthetic packet and tell every decision.

The packet enters from OVN; with --from-vtep it enters from the fabric. With --vrf
default it enters from the underlay, where SRC is not exposed on this node. With
--port it is on the tap of a VM: from the VM, or with --to-vm to it. Nothing is sent,
and no counter changes.`,
		Args: exactArgs("SRC", "DST"), ValidArgsFunction: noCompletion,
		RunE: func(c *cobra.Command, args []string) error {
			q, err := parsePlace(vrf, &req, from, args)
			if err != nil {
				return err
			}
			req.VRF, req.Src, req.Dst = q.VRF, q.Src, q.Dst
			if req.Protocol, err = parseProtocol(proto, q.Src.Is6()); err != nil {
				return err
			}
			if req.Protocol != protocolTCP && req.Protocol != protocolUDP {
				req.SrcPort, req.DstPort = 0, 0
			}
			if req.Length > maxTraceLength {
				return usagef("--length %d: a packet of at most %d bytes can be traced", req.Length, maxTraceLength)
			}
			if from != "" {
				if req.FromFabric, err = netip.ParseAddr(from); err != nil {
					return usagef("--from-vtep %q is not an IP address", from)
				}
			}
			t, err := o.source(c.ErrOrStderr()).Trace(c.Context(), req)
			if err != nil {
				return err
			}
			if err := o.print(c.OutOrStdout(), t, func(w io.Writer) error { return writeTrace(w, t) }); err != nil {
				return err
			}
			if droppedIn(t) {
				return errAnswerNo
			}
			return nil
		},
	}
	f := c.Flags()
	o.vrfFlag(c, &vrf, "the tenant's VNI")
	f.StringVar(&proto, "proto", "icmp", "icmp, tcp or udp")
	f.Uint16Var(&req.SrcPort, "sport", 40000, "source port of TCP and UDP")
	f.Uint16Var(&req.DstPort, "dport", 80, "destination port of TCP and UDP")
	f.Uint16Var(&req.Length, "length", 0, "length of the IP packet in bytes, 3600 at most; 0: the shortest possible")
	_ = c.RegisterFlagCompletionFunc("proto", cobra.FixedCompletions([]string{"icmp", "tcp", "udp"}, cobra.ShellCompDirectiveNoFileComp))
	f.StringVar(&req.Port, "port", "", "the logical port of a VM, instead of --vrf")
	f.BoolVar(&req.ToVM, "to-vm", false, "with --port: the packet is for the VM; a TCP packet is the answer to one that opens a connection")
	f.StringVar(&from, "from-vtep", "", "the packet enters from the fabric, from this VTEP")
	return c
}

// parsePlace reads where a packet is said to be.
func parsePlace(vrf string, req *status.TraceRequest, from string, args []string) (status.Query, error) {
	switch {
	case req.Port == "" && req.ToVM:
		return status.Query{}, usagef("--to-vm needs --port")
	case req.Port == "":
		return parseQuery(vrf, args)
	case vrf != "" || from != "":
		return status.Query{}, usagef("--port excludes --vrf and --from-vtep")
	}
	return parseEnds(args)
}

// droppedIn tells whether the packet itself goes no further, also where its sender
// is answered with an ICMP error.
func droppedIn(t status.Trace) bool { return t.Verdict == "drop" || t.Drop != "" }

const (
	protocolTCP, protocolUDP = 6, 17
	// maxTraceLength is what the kernel runs a program on: a page, less what it
	// needs for itself.
	maxTraceLength = 3600
)

func parseProtocol(s string, v6 bool) (uint8, error) {
	switch s {
	case "icmp":
		if v6 {
			return 58, nil
		}
		return 1, nil
	case "tcp":
		return protocolTCP, nil
	case "udp":
		return protocolUDP, nil
	}
	return 0, usagef("unknown protocol %q: use icmp, tcp or udp", s)
}

func writeTrace(w io.Writer, tr status.Trace) error {
	t := output.Table{Header: []string{"PROGRAM", "STEP", "RESULT", "WHY"}}
	for _, d := range tr.Decisions {
		t.Add(d.Program, d.Step, d.Result, d.Why)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	switch {
	case tr.Verdict == status.InsideOVN:
		output.Printf(w, "\nNo program ran: OVN forwards from %s to %s itself; Sluice never sees the packets.\n", tr.Request.Src, tr.Request.Dst)
	case tr.Verdict == status.OnKernelPath:
		output.Printf(w, "\nThe kernel's routes carry the packet: no program of Sluice's decides.\n")
	case tr.Verdict == status.OnToHost:
		output.Printf(w, "\nPasses to the host, unchanged: %s is not exposed on this node.\n", tr.Request.Dst)
	case tr.Verdict == status.OnTap && tr.Request.ToVM:
		output.Printf(w, "\nPasses to the VM%s.\n", orUnchanged(", as from ", tr.Becomes))
	case tr.Verdict == status.OnTap:
		output.Printf(w, "\nPasses to Open vSwitch%s.\n", orUnchanged(", for ", tr.Becomes))
	case tr.Verdict == "reply" && tr.Drop == "":
		output.Printf(w, "\nAnswered through %s.\n", tr.Interface)
	case tr.Verdict == "drop":
		output.Printf(w, "\nDropped: %s\n", tr.Drop)
	case tr.VTEP.IsValid():
		output.Printf(w, "\nLeaves through %s to VTEP %s with VNI %s.\n", tr.Interface, tr.VTEP, tr.VNI)
	case tr.Verdict == "reply":
		output.Printf(w, "\nAnswered through %s, and not forwarded: %s\n", tr.Interface, tr.Drop)
	default:
		output.Printf(w, "\nLeaves through %s.\n", tr.Interface)
	}
	return nil
}

func orUnchanged(word, becomes string) string {
	if becomes == "" {
		return ", unchanged"
	}
	return word + becomes
}
