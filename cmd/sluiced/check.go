package main

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/dryrun"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/metadataproxy"
	"github.com/ovn-sluice/sluice/dataplane/metadata/proxy"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/output"
)

func printEffective(c *cobra.Command, file string) error {
	cfg, err := config.Load(file, checks)
	if err != nil {
		return err
	}
	b, err := cfg.Effective()
	if err != nil {
		return err
	}
	if _, err = c.OutOrStdout().Write(b); err != nil {
		return err
	}
	warn := func(text string) { output.Println(c.ErrOrStderr(), "sluiced: warning: "+text) }
	if m := cfg.Metadata; m.Used() && m.SecurityGroups == config.SecurityGroupsRespect && cfg.OVN.NB == "" {
		warn("metadata.securityGroups is respect, and ovn.nb is not set; without ovn.nb no VM is served from its tap")
	}
	if cfg.Metadata.WithoutSecret() {
		warn("metadata.nova.secretFile is not set; anyone who reaches Nova's metadata API can read any VM's metadata")
	}
	if m := cfg.Metadata; m.Used() && m.Backend == config.BackendTemplate {
		if t, err := proxy.ParseTemplate(m.Template); err == nil && t.Has("instance") && !t.Has("project") {
			warn("metadata.template has {instance} without {project}; ports that have a project are refused")
		}
	}
	if err = cfg.Files(); err == nil {
		err = metadataproxy.Check(cfg.Metadata)
	}
	if os.Geteuid() != 0 && errors.Is(err, fs.ErrPermission) {
		return nil // sluiced reads them as root
	}
	return err
}

func printPlan(c *cobra.Command, file string, format output.Format) error {
	if err := format.Check(); err != nil {
		return &usageError{err}
	}
	cfg, err := load(file)
	if err != nil {
		return err
	}
	p, err := dryrun.Run(c.Context(), cfg, version, c.ErrOrStderr())
	if err != nil {
		return err
	}
	if err := format.Print(c.OutOrStdout(), p, func(w io.Writer) error { return dryrun.Write(w, p) }); err != nil {
		return err
	}
	if len(p.Changes) > 0 {
		return errDiffers
	}
	return nil
}
