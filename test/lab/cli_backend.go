package lab

import (
	"context"

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

// StartBackend runs the server of package backend on a VM, under its name, as its process
// "backend". Binary is sluice-lab.
func (l *Lab) StartBackend(ctx context.Context, vm, binary string) (*Process, error) {
	n, err := l.Node(vm)
	if err != nil {
		return nil, err
	}
	return l.spawn(ctx, n, spec{name: "backend", argv: []string{binary, "backend", vm}})
}
