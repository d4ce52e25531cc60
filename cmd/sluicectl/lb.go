package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/output"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func lbCommand(o *options) *cobra.Command {
	c := &cobra.Command{Use: "lb", Short: "Load balancers of OVN, and what serves their VIPs"}
	var vrf string
	list := &cobra.Command{
		Use: "list", Short: "All VIPs with their path, its reason and their backends", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var vni intent.VNI
			if vrf != "" {
				var err error
				if vni, err = parseVNI(vrf); err != nil {
					return err
				}
			}
			vips, err := admin.Call(c.Context(), admin.NewClient(o.socket), admin.ListVIPs, admin.VRFSelector{VNI: vni})
			if err != nil {
				return err
			}
			return o.print(c.OutOrStdout(), vips, func(w io.Writer) error { return writeVIPs(w, vips) })
		},
	}
	o.vrfFlag(list, &vrf, "only this VNI")
	c.AddCommand(list)
	return c
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
