package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func adoptCommand(o *options) *cobra.Command {
	var file string
	var vrfs []string
	var apply bool
	c := &cobra.Command{
		Use:   "adopt",
		Short: "Take over what ovn-bgp-agent left on this node",
		Long: `Take over what the EVPN driver of ovn-bgp-agent left on this node: its VRFs
(vrf-N with br-N and vxlan-N), their ways into provider bridges, and its flows. It
lists them, and what shows that they are the agent's: a VRF of the same form without
such a way is left alone. With --vrf it takes those alone that are named. With --apply
they get Sluice's mark, and traffic goes on as it did. A
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
			only, err := parseVNIs(vrfs)
			if err != nil {
				return err
			}
			cfg, _, err := cleanupConfig(c.ErrOrStderr(), file, c.Flags().Changed("config"))
			if err != nil {
				return err
			}
			if !apply {
				return adopt(c, o, cfg, only, false)
			}
			return withoutDaemon(o, cfg, func() error { return adopt(c, o, cfg, only, true) })
		},
	}
	c.Flags().StringVar(&file, "config", config.DefaultPath, "sluiced's configuration file, for its paths")
	c.Flags().StringArrayVar(&vrfs, "vrf", nil, "only the VRF with this VNI; may be given again")
	c.Flags().BoolVar(&apply, "apply", false, "do it")
	return c
}

func parseVNIs(words []string) (out []intent.VNI, err error) {
	for _, word := range words {
		vni, err := parseVNI(word)
		if err != nil {
			return nil, err
		}
		out = append(out, vni)
	}
	return out, nil
}

func adopt(c *cobra.Command, o *options, cfg *config.Config, only []intent.VNI, apply bool) error {
	return onSwitch(c.Context(), cfg, func(ctx context.Context, sw *ovs.Switch, unread error) error {
		found, strangers, err := owned.FindAdoptable(ctx, sw, only)
		err = errors.Join(unread, err)
		answer := status.Adoption{Applied: apply, Objects: []status.AdoptedObject{}}
		for _, s := range strangers {
			answer.Foreign = append(answer.Foreign, s.String())
			if slices.Contains(only, s.VNI) {
				err = errors.Join(err, fmt.Errorf("VRF %s cannot be adopted: %s", s.VNI, s.Why))
			}
		}
		var objects []object
		for _, a := range found {
			answer.Objects = append(answer.Objects, status.AdoptedObject{Object: a.What, Evidence: a.Evidence})
			objects = append(objects, object{a.What, a.Adopt})
		}
		if apply {
			failed, undone := doEach(ctx, objects)
			for i, why := range failed {
				answer.Objects[i].Adopted, answer.Objects[i].Error = why == "", why
			}
			err = errors.Join(err, undone)
		}
		return errors.Join(o.print(c.OutOrStdout(), answer, func(w io.Writer) error { return writeAdoption(w, answer, err == nil) }), err)
	})
}

// writeAdoption says nothing of objects that could not be adopted: the error does.
// complete tells that everything could be looked at.
func writeAdoption(w io.Writer, a status.Adoption, complete bool) error {
	for _, o := range a.Objects {
		switch {
		case !a.Applied:
			fmt.Fprintln(w, "would adopt", o.Object)
			if o.Evidence != "" {
				fmt.Fprintf(w, "  it is the agent's: %s\n", o.Evidence)
			}
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
