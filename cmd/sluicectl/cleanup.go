package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/vswitch"
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

// thing is one object that cleanup removes.
type thing struct {
	what   string
	remove func(context.Context) error
}

func cleanup(c *cobra.Command, cfg *config.Config, dry bool) error {
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	sw, stop, err := openSwitch(ctx, cfg)
	if err != nil {
		return err
	}
	defer stop()
	things, err := leftovers(ctx, cfg, sw)
	if err != nil {
		return err
	}
	if len(things) == 0 {
		fmt.Fprintln(c.OutOrStdout(), "nothing of Sluice is here")
		return nil
	}
	var errs []error
	for _, t := range things {
		if dry {
			fmt.Fprintln(c.OutOrStdout(), "would remove", t.what)
			continue
		}
		if err := t.remove(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", t.what, err))
			continue
		}
		fmt.Fprintln(c.OutOrStdout(), "removed", t.what)
	}
	return errors.Join(errs...)
}

// leftovers lists what is there, in the order of removal: first what brings
// tenants' packets in, last the programs that keep them from the host.
func leftovers(ctx context.Context, cfg *config.Config, sw *ovs.Switch) ([]thing, error) {
	var out []thing
	steering := ovs.NewSteering(sw)
	flows, err := steering.List(ctx)
	if err != nil {
		return nil, err
	}
	for k := range flows {
		out = append(out, thing{"flow " + k.String(), func(ctx context.Context) error {
			return errors.Join(steering.Delete(ctx, []intent.SteeringKey{k})...)
		}})
	}
	links := kernel.NewBridgeLinks(kernel.BridgeLinksConfig{Ports: sw})
	bridges, err := links.List(ctx)
	if err != nil {
		return nil, err
	}
	for k := range bridges {
		out = append(out, thing{"veth pair and port of bridge " + string(k), func(ctx context.Context) error {
			return errors.Join(links.Delete(ctx, []intent.BridgeKey{k})...)
		}})
	}
	fabric := kernel.NewFabric(kernel.FabricConfig{Port: cfg.Fabric.Port})
	if ok, err := fabric.Exists(); err != nil {
		return nil, err
	} else if ok {
		out = append(out, thing{"device " + kernel.FabricName, func(context.Context) error { return fabric.Remove() }})
	}
	pins, err := ebpf.Pins(cfg.Dataplane.BPFFS)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("pinned objects: %w", err)
	}
	if len(pins) > 0 {
		out = append(out, thing{fmt.Sprintf("programs and maps pinned in %s: %s", cfg.Dataplane.BPFFS, strings.Join(pins, " ")),
			func(context.Context) error { return ebpf.Remove(cfg.Dataplane.BPFFS) }})
	}
	return out, nil
}

// openSwitch reads the local Open vSwitch database once.
func openSwitch(ctx context.Context, cfg *config.Config) (*ovs.Switch, func(), error) {
	var session *ovsdb.Session
	sw := ovs.New(ovs.Config{RunDir: cfg.OVS.RunDir, Transact: func(ctx context.Context, ops ...ovsdb.Operation) ([]ovsdb.Result, error) {
		return session.Transact(ctx, ops...)
	}})
	conditions := ovsdb.Conditions{}
	for t := range ovs.Tables() {
		conditions[t] = []ovsdb.Clause{ovsdb.All()}
	}
	session, err := ovsdb.NewSession(ovsdb.Config{Database: vswitch.Database(), Endpoints: cfg.OVN.VSwitch, Tables: ovs.Tables(), Conditions: conditions, Handler: sw.Handle})
	if err != nil {
		return nil, nil, err
	}
	runCtx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); _ = session.Run(runCtx) }()
	stop := func() { cancel(); <-done }
	wait, cancelWait := context.WithTimeout(ctx, 10*time.Second)
	defer cancelWait()
	for {
		if _, err := sw.Bridges(); err == nil {
			return sw, stop, nil
		}
		select {
		case <-wait.Done():
			stop()
			return nil, nil, fmt.Errorf("local Open vSwitch database %s: %w", cfg.OVN.VSwitch, errors.Join(wait.Err(), session.Status().LastError))
		case <-sw.Changes():
		}
	}
}
