package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func adoptCommand(o *options) *cobra.Command {
	var file string
	var apply bool
	c := &cobra.Command{
		Use:   "adopt",
		Short: "Take over what ovn-bgp-agent left on this node",
		Long: `Take over what the EVPN driver of ovn-bgp-agent left on this node: its VRFs
(vrf-N with br-N and vxlan-N), their ways into provider bridges, and its flows. It
lists them; with --apply they get Sluice's mark, and traffic goes on as it did. A
sluiced that is started then uses them or puts its own in their place; cleanup would
remove them. Without the mark they are somebody else's, and a VRF that needs one of
their names fails with the reason foreign.

Stop ovn-bgp-agent before; with --apply sluiced must not run. FRR is not touched.

Exit codes: 0 done, or nothing is there; 1 something could not be looked at or
adopted; 2 wrong usage.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.output.Check(); err != nil {
				return &usageError{err}
			}
			cfg, _, err := cleanupConfig(c.ErrOrStderr(), file, c.Flags().Changed("config"))
			if err != nil {
				return err
			}
			if !apply {
				return adopt(c, o, cfg, false)
			}
			if newDaemon(o.socket).running() {
				return fmt.Errorf("sluiced is running (%s answers); stop it first", o.socket)
			}
			lock, err := admin.AcquireLock(cfg.StateDir)
			if err != nil {
				return fmt.Errorf("state directory %s: %w", cfg.StateDir, err)
			}
			defer func() { _ = lock.Release() }()
			return adopt(c, o, cfg, true)
		},
	}
	c.Flags().StringVar(&file, "config", config.DefaultPath, "sluiced's configuration file, for its paths")
	c.Flags().BoolVar(&apply, "apply", false, "do it")
	return c
}

func adopt(c *cobra.Command, o *options, cfg *config.Config, apply bool) error {
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	sw, stop, unread := openSwitch(ctx, cfg)
	if sw == nil {
		return unread
	}
	defer stop()
	found, strangers, err := owned.FindAdoptable(ctx, sw)
	errs := []error{unread, err}
	answer := status.Adoption{Applied: apply, Objects: []status.AdoptedObject{}, Foreign: strangers}
	for _, a := range found {
		object := status.AdoptedObject{Object: a.What}
		if apply {
			err := a.Adopt(ctx)
			object.Adopted = err == nil
			if err != nil {
				object.Error = err.Error()
				errs = append(errs, fmt.Errorf("%s: %w", a.What, err))
			}
		}
		answer.Objects = append(answer.Objects, object)
	}
	err = errors.Join(errs...)
	return errors.Join(o.print(c.OutOrStdout(), answer, func(w io.Writer) error { return writeAdoption(w, answer, err == nil) }), err)
}

// writeAdoption says nothing of objects that could not be adopted: the error does.
// complete tells that everything could be looked at.
func writeAdoption(w io.Writer, a status.Adoption, complete bool) error {
	for _, o := range a.Objects {
		switch {
		case !a.Applied:
			fmt.Fprintln(w, "would adopt", o.Object)
		case o.Adopted:
			fmt.Fprintln(w, "adopted", o.Object)
		}
	}
	for _, f := range a.Foreign {
		fmt.Fprintln(w, "leaves", f)
	}
	if len(a.Objects) == 0 && complete {
		fmt.Fprintln(w, "nothing of ovn-bgp-agent is here")
	} else if !a.Applied && len(a.Objects) > 0 {
		fmt.Fprintln(w, "nothing was changed; --apply does it")
	}
	return nil
}
