package main

//go:generate sh -c "go run . reference >../../docs/reference/sluice-controller.md"

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice"
	"github.com/ovn-sluice/sluice/cmd/sluice-controller/config"
	"github.com/ovn-sluice/sluice/pkg/clidoc"
	"github.com/ovn-sluice/sluice/pkg/configfile"
	"github.com/ovn-sluice/sluice/pkg/logging"
	"github.com/ovn-sluice/sluice/pkg/output"
)

var version = sluice.Version()

// Exit codes, but 0.
const (
	exitProblem = 1
	exitUsage   = 2 // the words of the command are wrong
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot()
	root.SetOut(output.Writer(os.Stdout))
	root.SetErr(output.Writer(os.Stderr))
	err := root.ExecuteContext(ctx)
	if err == nil {
		return
	}
	fmt.Fprintf(output.Writer(os.Stderr), "sluice-controller: %s\n", strings.ReplaceAll(err.Error(), "\n", "\nsluice-controller: "))
	if _, usage := errors.AsType[*usageError](err); usage {
		os.Exit(exitUsage)
	}
	os.Exit(exitProblem)
}

// usageError is a mistake in the command's words.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

func newRoot() *cobra.Command {
	var file, check string
	root := &cobra.Command{
		Use:   "sluice-controller",
		Short: "Octavia's API on OVN's Northbound database",
		Long: `Octavia's API on OVN's Northbound database, which is its only store.

It has no state of its own. Several may run at one database. Each answers every
call, and shows at once what another one has changed.

Exit codes: 0 done; 1 failed; 2 wrong usage.`,
		Args: func(c *cobra.Command, args []string) error {
			if err := cobra.NoArgs(c, args); err != nil {
				return &usageError{err}
			}
			return nil
		},
		Version: version, SilenceUsage: true, SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			if check != "" {
				return printEffective(c, check)
			}
			cfg, err := config.Load(file)
			if err != nil {
				return err
			}
			log := logging.New(os.Stderr, cfg.Log)
			log.Info("sluice-controller starts", "version", version, "config", file)
			if err := run(c.Context(), cfg, log); err != nil {
				return err
			}
			log.Info("sluice-controller ends")
			return nil
		},
	}
	root.SetVersionTemplate(sluice.VersionLine)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.AddCommand(clidoc.Command())
	f := root.Flags()
	f.StringVar(&file, "config", config.DefaultPath, "configuration file")
	f.StringVar(&check, "check", "", "validate this configuration file and the files that it names, print the effective configuration, and end")
	return root
}

func printEffective(c *cobra.Command, file string) error {
	cfg, err := config.Load(file)
	if err != nil {
		return err
	}
	text, err := configfile.Effective(cfg)
	if err != nil {
		return err
	}
	if _, err := c.OutOrStdout().Write(text); err != nil {
		return err
	}
	return verify(cfg)
}
