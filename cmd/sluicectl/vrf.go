package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/output"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func vrfCommand(o *options) *cobra.Command {
	c := &cobra.Command{Use: "vrf", Short: "Tenants' routing tables on this node"}
	c.AddCommand(question[[]status.VRF]{
		use: "list", short: "All VRFs with their route targets and traffic", ask: source.VRFs, write: writeVRFs,
	}.command(o), &cobra.Command{
		Use:   "show VNI",
		Short: "One VRF with its gateways, routes and problems",
		Args:  exactArgs("VNI"), ValidArgsFunction: o.completeVNI,
		RunE: func(c *cobra.Command, args []string) error {
			vni, err := parseVNI(args[0])
			if err != nil {
				return err
			}
			v, err := o.source(c.ErrOrStderr()).VRF(c.Context(), vni)
			if err != nil {
				return err
			}
			return o.print(c.OutOrStdout(), v, func(w io.Writer) error { return writeVRF(w, v) })
		},
	})
	return c
}

func writeVRFs(w io.Writer, vrfs []status.VRF) error {
	t := output.Table{Header: []string{"VNI", "STATE", "PATH", "REASON", "RD", "IMPORT", "EXPORT", "LOCAL", "REMOTE", "TO FABRIC", "FROM FABRIC"}}
	for _, v := range vrfs {
		t.Add(v.VNI.String(), stateWords(v), v.Path, v.Reason, v.RD, importWords(v), strings.Join(v.Export, " "),
			fmt.Sprint(v.Local), fmt.Sprint(v.Remote), packets(v.ToFabric), packets(v.FromFabric))
	}
	return t.Write(w)
}

// stateWords is a VRF's state, with its reason where there is one.
func stateWords(v status.VRF) string {
	if v.StateReason == "" {
		return string(v.State)
	}
	return fmt.Sprintf("%s (%s)", v.State, v.StateReason)
}

func importWords(v status.VRF) string {
	words := v.Import
	if v.AutoImport {
		words = append([]string{"*:" + v.VNI.String()}, words...)
	}
	return strings.Join(words, " ")
}

func packets(t status.Traffic) string { return fmt.Sprintf("%d pkts %d B", t.Packets, t.Bytes) }

func writeVRF(w io.Writer, v status.VRF) error {
	if err := writeVRFs(w, []status.VRF{v}); err != nil {
		return err
	}
	if v.ReasonDetail != "" {
		output.Printf(w, "\npath %s (%s): %s\n", v.Path, v.Reason, v.ReasonDetail)
	}
	if v.Error != "" {
		output.Printf(w, "\n%s: %s\n", v.StateReason, v.Error)
	}
	if v.Filtered+v.Waiting > 0 || v.MaxPrefixes > 0 {
		output.Printf(w, "\nnot imported: %d prefixes filtered, %d over the maximum%s\n", v.Filtered, v.Waiting, maximum(v.MaxPrefixes))
	}
	fmt.Fprintln(w)
	t := output.Table{Header: []string{"GATEWAY", "KIND", "STATE", "BRIDGE", "VLAN", "MAC", "ADDRESSES", "SERVED NEXT HOPS"}}
	for _, g := range v.Gateways {
		vlan := ""
		if g.VLAN != 0 {
			vlan = fmt.Sprint(g.VLAN)
		}
		t.Add(g.LogicalPort, g.Kind, string(g.State), g.Bridge, vlan, g.MAC.String(), join(g.Addresses), join(g.Served))
	}
	if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := writeRoutes(w, v.Routes); err != nil {
		return err
	}
	if v.State == status.Unknown { // so are its problems
		return nil
	}
	return writeProblems(w, v.Objects)
}

func maximum(n uint32) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" of %d", n)
}

func join[T fmt.Stringer](items []T) string {
	words := make([]string, len(items))
	for i, it := range items {
		words[i] = it.String()
	}
	return strings.Join(words, " ")
}

func parseVNI(s string) (intent.VNI, error) {
	if s == "" {
		return 0, usagef("--vrf is missing: the tenant's VNI")
	}
	if s == intent.DefaultVRF.String() {
		return intent.DefaultVRF, nil
	}
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n == 0 || intent.VNI(n) > intent.MaxVNI {
		return 0, usagef("%q is not a VNI: a number from 1 to %d, or %s", s, intent.MaxVNI, intent.DefaultVRF)
	}
	return intent.VNI(n), nil
}

func exactArgs(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return usagef("%s takes %s: %s", words(c), []string{"no argument", "one argument", "two arguments", "three arguments"}[len(names)], strings.Join(names, " "))
		}
		return nil
	}
}
