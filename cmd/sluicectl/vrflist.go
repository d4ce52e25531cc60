package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// vrfList is a command that prints rows of one VRF, or of all.
type vrfList[T any] struct {
	use, short string
	long       string // "": short
	// ask is given 0 for all.
	ask   func(c *cobra.Command, vni intent.VNI) (T, error)
	write func(io.Writer, T) error
}

func (l vrfList[T]) command(o *options) *cobra.Command {
	var vrf string
	c := &cobra.Command{
		Use: l.use, Short: l.short, Long: l.long, Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			vni, err := optionalVNI(vrf)
			if err != nil {
				return err
			}
			rows, err := l.ask(c, vni)
			if err != nil {
				return err
			}
			return o.print(c.OutOrStdout(), rows, func(w io.Writer) error { return l.write(w, rows) })
		},
	}
	o.vrfFlag(c, &vrf, "only this VNI")
	return c
}

// optionalVNI reads --vrf; 0 is all.
func optionalVNI(vrf string) (intent.VNI, error) {
	if vrf == "" {
		return 0, nil
	}
	return parseVNI(vrf)
}
