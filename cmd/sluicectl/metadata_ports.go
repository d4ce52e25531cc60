package main

import (
	"cmp"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/admin/nodeapi"
	"github.com/ovn-sluice/sluice/pkg/output"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func metadataPortsCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "ports",
		Short: "VMs of this node: their instance in Nova, and how their metadata requests reach the proxy",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			m, err := admin.Call(c.Context(), newDaemon(o).client, nodeapi.GetMetadata, admin.Nothing{})
			if err != nil {
				return err
			}
			return o.print(c.OutOrStdout(), m, func(w io.Writer) error { return writeMetadata(w, m) })
		},
	}
}

func writeMetadata(w io.Writer, m status.Metadata) error {
	if !m.Used {
		_, err := output.Printf(w, "metadata is not served: %s\n", m.Note)
		return err
	}
	if m.Proxy != "" {
		output.Printf(w, "the proxy does not serve: %s\n\n", m.Proxy)
	}
	t := output.Table{Header: []string{"PORT", "INSTANCE", "NETWORK", "SERVED", "DEVICE", "ADDRESSES", "NOTE"}}
	for _, p := range m.Ports {
		var notes []string
		if p.Reason != "" {
			notes = append(notes, strings.TrimSuffix(p.Reason+": "+p.Detail, ": "))
		}
		if p.Served != status.LeftToOVN && !p.Programmed {
			notes = append(notes, "not in place: "+cmp.Or(p.Error, "waiting"))
		}
		t.Add(p.Port, cmp.Or(p.Instance, "-"), cmp.Or(p.Network, "-"), string(p.Served), p.At(), p.Addresses.String(), strings.Join(notes, "; "))
	}
	return t.Write(w)
}

func metadataExplainCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "explain PORT",
		Short: "Whether requests of a VM reach the proxy: every step. PORT is a logical port, an instance, or an address or tap that one VM alone has",
		Args:  exactArgs("PORT"), ValidArgsFunction: noCompletion,
		RunE: func(c *cobra.Command, args []string) error {
			e, err := admin.Call(c.Context(), newDaemon(o).client, nodeapi.ExplainMetadata, status.MetadataQuery{Port: args[0]})
			if err != nil {
				return err
			}
			if err := o.print(c.OutOrStdout(), e, func(w io.Writer) error { return writeMetadataSteps(w, e) }); err != nil {
				return err
			}
			if !e.Works {
				return errAnswerNo
			}
			return nil
		},
	}
}

func writeMetadataSteps(w io.Writer, e status.MetadataExplanation) error {
	if err := writeSteps(w, e.Steps); err != nil {
		return err
	}
	if e.Works {
		_, err := output.Printf(w, "\nRequests of %s reach the proxy, as instance %s.\n", e.Port, e.Instance)
		return err
	}
	for _, s := range e.Steps {
		if s.Found {
			continue
		}
		output.Printf(w, "\nThe path is cut at: %s. %s\n", s.Object, s.Detail)
		if s.Hint != "" {
			output.Println(w, s.Hint)
		}
		break
	}
	return nil
}
