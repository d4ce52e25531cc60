package main

import (
	"fmt"
	"io"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/output"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func lbCommand(o *options) *cobra.Command {
	c := &cobra.Command{Use: "lb", Short: "Load balancers of OVN, and what serves their VIPs"}
	c.AddCommand(vrfList[[]status.VIP]{
		use: "list", short: "All VIPs with their path, its reason and their backends", write: writeVIPs,
		ask: func(c *cobra.Command, vni intent.VNI) ([]status.VIP, error) {
			return admin.Call(c.Context(), admin.NewClient(o.socket), admin.ListVIPs, admin.VRFSelector{VNI: vni})
		},
	}.command(o), vrfList[[]status.Flow]{
		use: "flows", short: "Flows to VIPs that this node knows, and their backends", write: writeFlows,
		ask: func(c *cobra.Command, vni intent.VNI) ([]status.Flow, error) {
			return admin.Call(c.Context(), admin.NewClient(o.socket), admin.ListFlows, admin.VRFSelector{VNI: vni})
		},
	}.command(o), lbExplain(o))
	return c
}

func writeFlows(w io.Writer, flows []status.Flow) error {
	t := output.Table{Header: []string{"VNI", "PROTOCOL", "CLIENT", "VIP", "BACKEND", "STATE", "IDLE"}}
	for _, f := range flows {
		t.Add(f.VNI.String(), f.Protocol.String(), f.Client.String(), f.VIP.String(), f.Backend.String(), f.State, fmt.Sprintf("%d s", f.Idle))
	}
	return t.Write(w)
}

func lbExplain(o *options) *cobra.Command {
	var vrf string
	c := &cobra.Command{
		Use: "explain --vrf VNI PROTOCOL CLIENT:PORT VIP:PORT", Short: "Which backend a flow gets, on this node and on any other, and why",
		Args: exactArgs("PROTOCOL", "CLIENT:PORT", "VIP:PORT"),
		RunE: func(c *cobra.Command, args []string) error {
			var q status.VIPQuery
			var err error
			if q.VNI, err = parseVNI(vrf); err != nil {
				return err
			}
			if err := q.Protocol.UnmarshalText([]byte(args[0])); err != nil {
				return usagef("%v", err)
			}
			if q.Client, err = parseEnd("client", args[1]); err != nil {
				return err
			}
			if q.VIP, err = parseEnd("VIP", args[2]); err != nil {
				return err
			}
			if q.Client.Addr().Is4() != q.VIP.Addr().Is4() {
				return usagef("client %s and VIP %s are of two address families", q.Client, q.VIP)
			}
			e, err := admin.Call(c.Context(), admin.NewClient(o.socket), admin.ExplainVIP, q)
			if err != nil {
				return err
			}
			return o.print(c.OutOrStdout(), e, func(w io.Writer) error { return writeVIPExplanation(w, e) })
		},
	}
	o.vrfFlag(c, &vrf, "the tenant's VNI")
	return c
}

// parseEnd reads an address with its port.
func parseEnd(what, text string) (netip.AddrPort, error) {
	end, err := netip.ParseAddrPort(text)
	if err != nil || end.Addr().Zone() != "" {
		return end, usagef("%s %q: an address and a port are wanted, IPv6 in brackets", what, text)
	}
	return netip.AddrPortFrom(end.Addr().Unmap(), end.Port()), nil
}

func writeVIPExplanation(w io.Writer, e status.VIPExplanation) error {
	if err := writeVIPs(w, []status.VIP{e.VIP}); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if e.VIP.Path != "ebpf" {
		_, err := fmt.Fprintf(w, "OVN chooses the backend: %s\n", e.VIP.ReasonDetail)
		return err
	}
	if e.Known != nil {
		fmt.Fprintf(w, "this node knows the flow: to %s\n", e.Known)
	}
	if e.Backend == nil {
		_, err := fmt.Fprintln(w, "no backend gets new flows: packets of one that is not known are dropped (no_backend)")
		return err
	}
	_, err := fmt.Fprintf(w, "a node that does not know it, slot %d of %d: to %s\n", e.Slot, e.VIP.Slots, intent.FormatEndpoint(e.Backend.Addr, e.Backend.Port))
	return err
}

func writeVIPs(w io.Writer, vips []status.VIP) error {
	t := output.Table{Header: []string{"VNI", "VIP", "PROTOCOL", "LOAD BALANCER", "STATE", "PATH", "REASON", "BACKENDS"}}
	for _, v := range vips {
		live := 0
		for _, b := range v.Backends {
			if b.Weight > 0 {
				live++
			}
		}
		state := string(v.State)
		if v.Standby {
			state = "standby"
		}
		t.Add(v.VNI.String(), intent.FormatEndpoint(v.Address, v.Port), v.Protocol.String(), v.LoadBalancer, state, v.Path, v.Reason,
			fmt.Sprintf("%d of %d", live, len(v.Backends)))
	}
	return t.Write(w)
}
