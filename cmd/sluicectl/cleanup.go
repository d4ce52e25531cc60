package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

func cleanupCommand(o *options) *cobra.Command {
	var file string
	var dry bool
	c := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove from this node everything that carries Sluice's mark",
		Long: `Remove from this node everything that carries Sluice's mark: flows and ports in
Open vSwitch, devices, pinned programs and maps. Tenants' traffic through this
node ends. It lists first what it removes, and refuses while sluiced runs.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := cleanupConfig(file, c.Flags().Changed("config"))
			if err != nil {
				return err
			}
			if c.Flags().Changed("bpffs") || os.Getenv("SLUICE_BPFFS") != "" {
				cfg.Dataplane.BPFFS = o.bpffs
			}
			if newDaemon(o.socket).running() {
				return fmt.Errorf("sluiced is running (%s answers); stop it first", o.socket)
			}
			lock, err := admin.AcquireLock(cfg.StateDir)
			if err != nil {
				return fmt.Errorf("state directory %s: %w", cfg.StateDir, err)
			}
			defer func() { _ = lock.Release() }()
			return cleanup(c, cfg, dry)
		},
	}
	c.Flags().StringVar(&file, "config", config.DefaultPath, "sluiced's configuration file, for its paths")
	c.Flags().BoolVar(&dry, "dry-run", false, "list only")
	return c
}

// cleanupConfig takes the defaults where no file is there and none was asked for.
func cleanupConfig(file string, asked bool) (*config.Config, error) {
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) && !asked {
		return config.Default(), nil
	}
	return config.Load(file)
}

func cleanup(c *cobra.Command, cfg *config.Config, dry bool) error {
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	sw, stop, unread := openSwitch(ctx, cfg)
	if sw == nil {
		return unread
	}
	defer stop()
	// What needs a switch that does not answer stays, and is an error of its own.
	things, err := owned.List(ctx, sw, cfg.Dataplane.BPFFS)
	errs := []error{unread, err}
	if len(things) == 0 && errors.Join(errs...) == nil {
		fmt.Fprintln(c.OutOrStdout(), "nothing of Sluice is here")
		return nil
	}
	for _, t := range things {
		if dry {
			fmt.Fprintln(c.OutOrStdout(), "would remove", t.What)
			continue
		}
		if err := t.Remove(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", t.What, err))
			continue
		}
		fmt.Fprintln(c.OutOrStdout(), "removed", t.What)
	}
	return errors.Join(errs...)
}

// openSwitch reads the local Open vSwitch database once. A switch that could not
// be read comes with the error; no switch does if the configuration is wrong.
func openSwitch(ctx context.Context, cfg *config.Config) (*ovs.Switch, func(), error) {
	tls := cfg.OVN.TLS
	sw, session, err := ovs.Open(ovs.Config{RunDir: cfg.OVS.RunDir}, ovsdb.Config{
		Endpoints: cfg.OVN.VSwitch, TLS: ovsdb.TLSFiles{Cert: tls.Certificate, Key: tls.PrivateKey, CA: tls.CACert},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("local Open vSwitch database: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); _ = session.Run(ctx) }()
	stop := func() { cancel(); <-done }
	wait, cancelWait := context.WithTimeout(ctx, 10*time.Second)
	defer cancelWait()
	if err := sw.WaitRead(wait); err != nil {
		return sw, stop, fmt.Errorf("local Open vSwitch database %s: %w", cfg.OVN.VSwitch, errors.Join(err, session.Status().LastError))
	}
	return sw, stop, nil
}
