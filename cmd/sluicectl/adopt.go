package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/dataplane/metadata/namespace"
	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/output"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func adoptCommand(o *options) *cobra.Command {
	var file string
	var vrfs []string
	var only chosen
	var apply bool
	c := &cobra.Command{
		Use:   "adopt",
		Short: "Take over objects of ovn-bgp-agent and neutron-ovn-metadata-agent on this node",
		Long: `Take over objects of other agents on this node:

- of the EVPN driver of ovn-bgp-agent: its VRFs (vrf-N with br-N and vxlan-N), their links
  into provider bridges, and its flows. A VRF with such names and without such a link stays
  as it is. Stop ovn-bgp-agent first. FRR is not touched.
- of neutron-ovn-metadata-agent, if the configuration serves metadata: its namespaces
  (ovnmeta-NETWORK), with the veth pair and the port of the integration bridge. Its haproxy
  keeps running: end haproxy, and then the agent, when 'sluicectl metadata proxy' shows
  open listeners.

The command lists these objects, and why each is an agent's. --vrf and --network select
some. --apply gives them Sluice's mark, without interrupting traffic; sluiced must not run
meanwhile. sluiced, started afterwards, uses, replaces or removes them; 'sluicectl
cleanup' removes them. Objects without the mark are foreign: what needs one of their names
fails with the reason foreign.

Exit codes: 0 done, or nothing to adopt; 1 an object could not be read or adopted;
2 wrong usage.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if err := o.output.Check(); err != nil {
				return &usageError{err}
			}
			if only.vrfs, err = parseVNIs(vrfs); err != nil {
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
	c.Flags().StringVar(&file, "config", config.DefaultPath, "sluiced's configuration file, for its paths and whether it serves metadata")
	c.Flags().StringArrayVar(&vrfs, "vrf", nil, "only the VRF with this VNI; may be given again")
	c.Flags().StringArrayVar(&only.networks, "network", nil, "only the metadata namespace of the network with this UUID; may be given again")
	c.Flags().BoolVar(&apply, "apply", false, "adopt the objects")
	return c
}

// chosen are the objects that were named; without any it is all.
type chosen struct {
	vrfs     []intent.VNI
	networks []string
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

func adopt(c *cobra.Command, o *options, cfg *config.Config, only chosen, apply bool) error {
	return onSwitch(c.Context(), cfg, func(ctx context.Context, sw *ovs.Switch, unread error) error {
		looking, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		found, foreign, err := findAdoptable(looking, sw, cfg, only)
		err = errors.Join(unread, err)
		answer := status.Adoption{Applied: apply, Objects: []status.AdoptedObject{}, Foreign: foreign}
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

// findAdoptable lists what can be adopted, and what has such names and cannot. Of the
// latter what was named is an error, too.
func findAdoptable(ctx context.Context, sw *ovs.Switch, cfg *config.Config, only chosen) (found []owned.Adoptable, foreign []string, err error) {
	var errs []error
	if len(only.vrfs) > 0 || len(only.networks) == 0 {
		vrfs, strangers, err := owned.FindAdoptable(ctx, sw, only.vrfs)
		found, errs = vrfs, append(errs, err)
		for _, s := range strangers {
			foreign = append(foreign, s.String())
			if slices.Contains(only.vrfs, s.VNI) {
				errs = append(errs, fmt.Errorf("VRF %s cannot be adopted: %s", s.VNI, s.Why))
			}
		}
	}
	if len(only.networks) == 0 && len(only.vrfs) > 0 {
		return found, foreign, errors.Join(errs...)
	}
	spaces, strangers, err := owned.FindAdoptableMetadata(ctx, sw, namespace.Names{}, only.networks)
	errs = append(errs, err)
	if !cfg.Metadata.Used() {
		// It would go with the next start of sluiced, and its guests would have no answer.
		for _, a := range spaces {
			foreign = append(foreign, a.What+": the configuration serves no metadata (metadata.backend)")
			if len(only.networks) > 0 {
				errs = append(errs, fmt.Errorf("%s: the configuration serves no metadata (metadata.backend)", a.What))
			}
		}
		spaces = nil
	}
	for _, s := range strangers {
		foreign = append(foreign, s.String())
		if slices.Contains(only.networks, s.Network) {
			errs = append(errs, fmt.Errorf("%s cannot be adopted", s))
		}
	}
	return append(found, spaces...), foreign, errors.Join(errs...)
}

// writeAdoption says nothing of objects that could not be adopted: the error does.
// complete tells that everything could be looked at.
func writeAdoption(w io.Writer, a status.Adoption, complete bool) error {
	for _, o := range a.Objects {
		switch {
		case !a.Applied:
			output.Println(w, "would adopt", o.Object)
			if o.Evidence != "" {
				output.Printf(w, "  it is the agent's: %s\n", o.Evidence)
			}
		case o.Adopted:
			output.Println(w, "adopted", o.Object)
		}
	}
	for _, f := range a.Foreign {
		output.Println(w, "leaves", f)
	}
	if len(a.Objects) == 0 && complete {
		fmt.Fprintln(w, "nothing of another agent is here")
	} else if !a.Applied && len(a.Objects) > 0 {
		fmt.Fprintln(w, "nothing was changed; --apply adopts them")
	}
	return nil
}
