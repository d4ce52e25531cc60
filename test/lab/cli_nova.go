package lab

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/test/nova"
)

// novaCommand is what StartNova runs.
func novaCommand() *cobra.Command {
	return &cobra.Command{
		Use: "nova FILE ADDRESS:PORT", Short: "stand in for Nova's metadata API", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return nova.Run(cmd.Context(), args[0], args[1]) },
	}
}

// startNovas starts the stand-in for Nova of each cloud with instances.
func (l *Lab) startNovas(ctx context.Context) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	for _, c := range l.Scenario().Clouds {
		if len(c.NovaInstances()) == 0 {
			continue
		}
		if _, err := l.StartNova(ctx, c.Name, exe); err != nil {
			return err
		}
	}
	return nil
}
