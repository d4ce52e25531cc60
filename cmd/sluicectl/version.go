package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice"
	"github.com/ovn-sluice/sluice/pkg/output"
	"github.com/ovn-sluice/sluice/pkg/status"
)

var version = sluice.Version()

func versionCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.print(c.OutOrStdout(), status.Version{Version: version}, func(w io.Writer) error {
				_, err := output.Println(w, version)
				return err
			})
		},
	}
}
