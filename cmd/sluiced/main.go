// Command sluiced is Sluice's node daemon: it follows the OVN databases, speaks
// BGP, and programs the eBPF data plane.
package main

//go:generate sh -c "go run . reference >../../docs/reference/sluiced.md"

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/pkg/clidoc"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/logging"
)

// version is set by the linker.
var version = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newRoot().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "sluiced: %v\n", err)
		os.Exit(1)
	}
}

func newRoot() *cobra.Command {
	var file, check string
	root := &cobra.Command{
		Use:   "sluiced",
		Short: "The node dataplane of OVN clouds",
		Long: `The node dataplane of OVN clouds: EVPN in TC eBPF, with BGP inside.

Everything about OVN is found in the local Open vSwitch database. A daemon that
ends, however it ends, leaves forwarding running; see 'sluicectl cleanup'.`,
		Args: cobra.NoArgs, Version: version, SilenceUsage: true, SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			if check != "" {
				return printEffective(c, check)
			}
			return run(c.Context(), file)
		},
	}
	root.AddCommand(clidoc.Command())
	f := root.Flags()
	f.StringVar(&file, "config", config.DefaultPath, "configuration file")
	f.StringVar(&check, "check", "", "validate this configuration file, print what is in effect, and end")
	return root
}

func printEffective(c *cobra.Command, file string) error {
	cfg, err := config.Load(file)
	if err != nil {
		return err
	}
	b, err := cfg.Effective()
	if err != nil {
		return err
	}
	_, err = c.OutOrStdout().Write(b)
	return err
}

func run(ctx context.Context, file string) error {
	cfg, err := config.Load(file)
	if err != nil {
		return err
	}
	log, _ := logging.New(os.Stderr, cfg.Log)
	if os.Geteuid() != 0 {
		return errors.New("sluiced needs root: it makes devices and loads eBPF programs")
	}
	d, err := newDaemon(cfg, log)
	if err != nil {
		return err
	}
	log.Info("sluiced starts", "version", version, "config", file)
	if err := d.run(ctx); err != nil {
		return err
	}
	log.Info("sluiced ends; what it programmed goes on forwarding")
	return nil
}
