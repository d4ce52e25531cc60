package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/metadata/namespace"
	"github.com/ovn-sluice/sluice/dataplane/metadata/proxy"
	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/output"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func cleanupCommand(o *options) *cobra.Command {
	var file string
	var dry bool
	c := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove from this node everything that carries Sluice's mark",
		Long: `Remove from this node everything that carries Sluice's mark: flows and ports in
Open vSwitch, devices, routes, namespaces of metadata, pinned programs and maps.
Tenants' traffic through this node ends. The command prints what it has removed, and
refuses while sluiced runs; with --dry-run it lists what it would remove, also while
sluiced runs. What sluiced wrote into the Southbound database stays: docs/install.md
has the commands that remove it.

Exit codes: 0 done, or nothing to remove; 1 an object could not be read or removed;
2 wrong usage.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.output.Check(); err != nil {
				return &usageError{err}
			}
			cfg, found, err := cleanupConfig(c.ErrOrStderr(), file, c.Flags().Changed("config"))
			if err != nil {
				return err
			}
			if c.Flags().Changed("bpffs") || os.Getenv("SLUICE_BPFFS") != "" {
				cfg.Dataplane.BPFFS = o.bpffs
			}
			if dry {
				return cleanup(c, o, cfg, true)
			}
			return withoutDaemon(o, cfg, func() error {
				if !found {
					// Half of it would go, and the flows that lead to it stay.
					if err := cfg.LocalDatabase(); err != nil {
						return fmt.Errorf("nothing was removed: %w; or give the configuration of sluiced as --config", err)
					}
				}
				return cleanup(c, o, cfg, false)
			})
		},
	}
	c.Flags().StringVar(&file, "config", config.DefaultPath, "sluiced's configuration file, for its paths")
	c.Flags().BoolVar(&dry, "dry-run", false, "list only")
	return c
}

// cleanupConfig takes the defaults where no file is there and none was asked for,
// and says so: what is somewhere else is not found with them.
func cleanupConfig(notes io.Writer, file string, asked bool) (cfg *config.Config, found bool, err error) {
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) && !asked {
		cfg = config.Default()
		output.Printf(notes, "%s does not exist; the defaults apply, such as Open vSwitch at %s; --config names another file\n",
			file, cfg.OVN.VSwitch)
		return cfg, false, nil
	}
	cfg, err = config.Load(file, config.Checks{MetadataTemplate: proxy.CheckTemplate})
	return cfg, true, err
}

func cleanup(c *cobra.Command, o *options, cfg *config.Config, dry bool) error {
	return onSwitch(c.Context(), cfg, func(ctx context.Context, sw *ovs.Switch, unread error) error {
		// What needs a switch that does not answer stays, and is an error of its own.
		looking, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		things, err := owned.Metadata(looking, sw, namespace.Names{}, owned.MetadataPins(cfg.Dataplane.BPFFS))
		clients, clientsErr := owned.Clients(owned.ClientPins(cfg.Dataplane.BPFFS))
		rest, restErr := owned.List(looking, sw, cfg.Dataplane.BPFFS)
		things, err = slices.Concat(things, clients, rest), errors.Join(unread, err, clientsErr, restErr)
		if errors.Is(err, ebpf.ErrNewerLayout) { // what would be left would stop this version's start, too
			return fmt.Errorf("nothing is removed: %w", err)
		}
		answer := status.Cleanup{DryRun: dry, Objects: []status.CleanupObject{}}
		var objects []object
		for _, t := range things {
			answer.Objects = append(answer.Objects, status.CleanupObject{Object: t.What})
			objects = append(objects, object{t.What, t.Remove})
		}
		if !dry {
			failed, undone := doEach(ctx, objects)
			for i, why := range failed {
				answer.Objects[i].Removed, answer.Objects[i].Error = why == "", why
			}
			err = errors.Join(err, undone)
		}
		return errors.Join(o.print(c.OutOrStdout(), answer, func(w io.Writer) error { return writeCleanup(w, answer, err == nil) }), err)
	})
}

// writeCleanup says nothing of objects that could not be removed: the error does.
// complete tells that everything could be looked at.
func writeCleanup(w io.Writer, c status.Cleanup, complete bool) error {
	if len(c.Objects) == 0 && complete {
		_, err := fmt.Fprintln(w, "nothing of Sluice is here")
		return err
	}
	for _, o := range c.Objects {
		switch {
		case c.DryRun:
			output.Println(w, "would remove", o.Object)
		case o.Removed:
			output.Println(w, "removed", o.Object)
		}
	}
	return nil
}
