package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/pkg/output"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func diffCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "diff",
		Short: "What sluiced would change now: wanted against actual",
		Long:  "What sluiced would change now. No line means that the node is as it is wanted; exit code 3 that it is not.",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			d, err := o.source(c.ErrOrStderr()).Diff(c.Context())
			if err != nil {
				return err
			}
			if err := o.print(c.OutOrStdout(), d, func(w io.Writer) error { return writeDiff(w, d) }); err != nil {
				return err
			}
			if len(d.Changes) > 0 {
				return errAnswerNo
			}
			return nil
		},
	}
}

func writeDiff(w io.Writer, d status.Diff) error {
	if len(d.Changes) == 0 {
		_, err := fmt.Fprintln(w, "no difference")
		return err
	}
	return output.Changes(d.Changes).Write(w)
}
