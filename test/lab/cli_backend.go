package lab

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/test/backend"
)

// backendCommand is what StartBackend runs.
func backendCommand() *cobra.Command {
	return &cobra.Command{
		Use: "backend NAME", Short: "serve a name by HTTP and UDP", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return backend.Run(cmd.Context(), args[0]) },
	}
}

// askCommand is the client of a backend's UDP, and SCTP.
func askCommand() *cobra.Command {
	var patience time.Duration
	var sctp bool
	var port uint16
	cmd := &cobra.Command{
		Use: "ask ADDRESS:PORT [ADDRESS:PORT...]", Short: "ask backends by UDP or SCTP, each from a port of its own", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for i, arg := range args {
				to, err := netip.ParseAddrPort(arg)
				if err != nil {
					return fmt.Errorf("whom to ask: %w", err)
				}
				from := 0
				if port != 0 {
					from = int(port) + i
				}
				if sctp {
					err = backend.AskSCTP(cmd.Context(), to, patience, cmd.OutOrStdout())
				} else {
					err = backend.Ask(cmd.Context(), to, from, patience, cmd.OutOrStdout())
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().DurationVar(&patience, "patience", time.Second, "how long to wait for each answer")
	cmd.Flags().BoolVar(&sctp, "sctp", false, "ask by SCTP")
	cmd.Flags().Uint16Var(&port, "port", 0, "with UDP: the first local port; each address has the next (default any that is free)")
	return cmd
}

// StartBackend runs the server of package backend on a VM, under its name, as its process
// "backend". Binary is sluice-lab.
func (l *Lab) StartBackend(ctx context.Context, vm, binary string) (*Process, error) {
	n, err := l.Node(vm)
	if err != nil {
		return nil, err
	}
	return l.spawn(ctx, n, spec{name: "backend", argv: []string{binary, "backend", vm}})
}
