package metadataproxy

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/dataplane/metadata/service"
	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/crash"
	"github.com/ovn-sluice/sluice/pkg/heap"
	"github.com/ovn-sluice/sluice/pkg/logging"
)

type options struct {
	version string
	load    func(file string) (*config.Config, error)
	config  string
	// namespaces is the directory of named network namespaces.
	namespaces string
}

// Command is the process "sluiced metadata", whose context ends by end. load reads the configuration, and args
// judges the words of the command.
func Command(version string, end *EndSignal, args cobra.PositionalArgs, load func(file string) (*config.Config, error)) *cobra.Command {
	o := options{version: version, load: load}
	c := &cobra.Command{
		Use:   "metadata",
		Short: "Answer the metadata requests of this node's VMs",
		Long: `Answer the metadata requests of this node's VMs (169.254.169.254), as metadata in
the configuration says. sluiced steers the requests to this process. Killing or
upgrading sluiced does not affect it.

SIGHUP and SIGUSR2 restart it in place, with the installed build and the present
configuration. Its process id, its listeners and waiting connections stay; requests
in progress have 5 seconds. It does not restart with a build that refuses the
configuration. SIGTERM ends it; under systemd its listeners stay open, and
connections wait for the next process.

With metadata.backend none it says so, and does nothing.`,
		Args: args,
		RunE: func(c *cobra.Command, _ []string) error { return run(c.Context(), end, o) },
	}
	f := c.Flags()
	f.StringVar(&o.config, "config", config.DefaultPath, "configuration file")
	f.StringVar(&o.namespaces, "netns", "", "directory of named network namespaces, in place of /run/netns")
	_ = f.MarkHidden("netns")
	return c
}

// heapGrowth is in percent. Almost all of the proxy's heap is garbage of requests, and one that
// comes during a collection waits.
const heapGrowth = 400

// stateDir is that of the metadata proxy below the state directory.
const stateDir = "metadata"

// run is the metadata proxy from its lock to its end. What was to be the next
// process and could not be started leaves this one to go on.
func run(ctx context.Context, end *EndSignal, o options) error {
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP, syscall.SIGUSR2)
	cfg, err := o.load(o.config)
	if err != nil {
		return err
	}
	heap.Limit(heapGrowth)
	log := logging.New(os.Stderr, cfg.Log)
	next, err := newNextProcess(o.config)
	if err != nil {
		return err
	}
	log.Info("sluiced metadata starts", "version", o.version, "config", o.config)
	dir := filepath.Join(cfg.StateDir, stateDir)
	lock, err := admin.AcquireLock(dir, "sluiced metadata")
	if err != nil {
		return fmt.Errorf("state directory of the metadata proxy: %w", err)
	}
	defer func() { _ = lock.Release() }()
	crash.Log(dir, log)
	sockets, err := socketsOfBefore()
	if err != nil {
		log.Error("the sockets of the last process are lost; waiting connections are refused", "error", err)
	}
	p, err := newProcess(cfg, o, log)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		var handOver bool
		if sockets, handOver = p.run(ctx, sockets, again, next.check); !handOver {
			break
		}
		signal.Ignore(syscall.SIGHUP, syscall.SIGUSR2) // until the next process is there to take them
		if end.release(); ctx.Err() != nil {
			break
		}
		err := service.Exec(next.path, os.Args, sockets)
		ctx = end.Catch(ctx)
		signal.Notify(again, syscall.SIGHUP, syscall.SIGUSR2)
		log.Error("sluiced metadata cannot restart in place, and keeps serving", "error", err)
	}
	log.Info("sluiced metadata ends")
	return nil
}
