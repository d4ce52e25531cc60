package main

//go:generate sh -c "go run . reference >../../docs/reference/sluiced.md"

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
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/metadataproxy"
	"github.com/ovn-sluice/sluice/dataplane/metadata/proxy"
	"github.com/ovn-sluice/sluice/pkg/clidoc"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/config/neutron"
	"github.com/ovn-sluice/sluice/pkg/logging"
	"github.com/ovn-sluice/sluice/pkg/output"
)

var version = sluice.Version()

func main() {
	var end metadataproxy.EndSignal
	ctx := end.Catch(context.Background())
	// The configuration is read at the start alone: who asks for it anew does not end it.
	signal.Ignore(syscall.SIGHUP)
	root := newRoot(&end)
	root.SetOut(output.Writer(os.Stdout))
	root.SetErr(output.Writer(os.Stderr))
	err := root.ExecuteContext(ctx)
	var usage *usageError
	switch {
	case errors.Is(err, errDiffers):
		os.Exit(exitDiffers)
	case errors.As(err, &usage):
		fmt.Fprintf(output.Writer(os.Stderr), "sluiced: %v\nSee 'sluiced --help'.\n", err)
		os.Exit(exitUsage)
	case err != nil:
		fmt.Fprintf(output.Writer(os.Stderr), "sluiced: %s\n", strings.ReplaceAll(err.Error(), "\n", "\nsluiced: "))
		os.Exit(exitProblem)
	}
}

// Exit codes, but 0.
const (
	exitProblem = 1
	exitUsage   = 2 // the words of the command are wrong
	exitDiffers = 3 // a dry run found something to change; as sluicectl's
)

// errDiffers ends a dry run that has printed what would be changed.
var errDiffers = errors.New("there is something to change")

// newRoot is the command, in a process whose context ends by end.
func newRoot(end *metadataproxy.EndSignal) *cobra.Command {
	var file, check, secretFile string
	var imports []string
	var dry bool
	format := output.People
	root := &cobra.Command{
		Use:   "sluiced",
		Short: "The node dataplane of OVN clouds",
		Long: `The node dataplane of OVN clouds: EVPN in TC eBPF, with BGP inside.

sluiced finds OVN through the local Open vSwitch database. Forwarding continues
after sluiced has ended, for whatever reason; 'sluicectl cleanup' ends it.

With --dry-run sluiced reads OVN and the node, prints what it would create, change
and remove, and ends without a change. A running sluiced is not affected. A dry run
starts no BGP, so it only counts imported routes.

Exit codes: 0 done, and in a dry run nothing to change; 1 failed; 2 wrong usage;
3 a dry run found something to change.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(imports) > 0 {
				return nil // more files
			}
			return noArgs(c, args)
		},
		Version: version, SilenceUsage: true, SilenceErrors: true,
		RunE: func(c *cobra.Command, args []string) error {
			if len(imports) > 0 {
				return neutron.Import(c.OutOrStdout(), c.ErrOrStderr(), append(imports, args...), secretFile)
			}
			if check != "" {
				return printEffective(c, check)
			}
			if dry {
				return printPlan(c, file, format)
			}
			return run(c.Context(), file)
		},
	}
	root.SetVersionTemplate(sluice.VersionLine)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.AddCommand(metadataproxy.Command(version, end, noArgs, load), clidoc.Command())
	f := root.Flags()
	f.StringVar(&file, "config", config.DefaultPath, "configuration file")
	f.BoolVar(&dry, "dry-run", false, "print what sluiced would change on this node, and end")
	f.StringVarP((*string)(&format), "output", "o", string(format), "output format of a dry run: table, json or yaml")
	f.StringVar(&check, "check", "", "validate this configuration file and the files that it names, print the effective configuration, and end")
	f.StringArrayVar(&imports, "import-neutron-config", nil, "translate this file of Neutron's OVN metadata agent, and the files after it, to a configuration of sluiced, print it, and end; the last file with an option counts")
	f.StringVar(&secretFile, "secret-file", neutron.DefaultSecretFile, "file for metadata_proxy_shared_secret, which --import-neutron-config writes there and does not print")
	return root
}

// usageError is a mistake in the command's words.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

func noArgs(c *cobra.Command, args []string) error {
	if err := cobra.NoArgs(c, args); err != nil {
		return &usageError{err}
	}
	return nil
}

// checks are those of the configuration that other packages know.
var checks = config.Checks{MetadataTemplate: proxy.CheckTemplate}

// load reads the configuration, for somebody who may do what it says.
func load(file string) (*config.Config, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("sluiced needs root: it reads and creates devices, flows and eBPF maps")
	}
	return config.Load(file, checks)
}

func run(ctx context.Context, file string) error {
	cfg, err := load(file)
	if err != nil {
		return err
	}
	log := logging.New(os.Stderr, cfg.Log)
	log.Info("sluiced starts", "version", version, "config", file)
	if err := runDaemon(ctx, cfg, log); err != nil {
		return err
	}
	log.Info("sluiced ends; its programs keep forwarding")
	return nil
}
