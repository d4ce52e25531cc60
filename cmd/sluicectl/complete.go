package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
)

// completeVNI offers the VNIs of this node's VRFs for the first argument.
func (o *options) completeVNI(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(c.Context(), 2*time.Second)
	defer cancel()
	vrfs, err := o.source(io.Discard).VRFs(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []cobra.Completion
	for _, v := range vrfs {
		out = append(out, cobra.CompletionWithDesc(v.VNI.String(), fmt.Sprintf("%d routes into OVN, %d to other nodes", v.Local, v.Remote)))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// vrfFlag adds --vrf, which completes to the VNIs that there are.
func (o *options) vrfFlag(c *cobra.Command, vrf *string, usage string) {
	c.Flags().StringVar(vrf, "vrf", "", usage)
	complete := func(c *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return o.completeVNI(c, nil, word)
	}
	_ = c.RegisterFlagCompletionFunc("vrf", complete) // fails for a flag that is not there
}

func noCompletion(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveNoFileComp
}
