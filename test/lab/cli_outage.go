package lab

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
)

func outageCommand(opt *Options) *cobra.Command {
	return &cobra.Command{
		Use:   "outage CHASSIS",
		Short: "kill a gateway chassis and print how long traffic was interrupted",
		Long: "Kill a gateway chassis as a loss of power does, while VMs of other clouds talk to the VMs behind\n" +
			"it. Print how long answers were missing, and OVN's share of that time. The chassis stays dead.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := Open(*opt)
			if err := errors.Join(err, lacksRoot()); err != nil {
				return err
			}
			o, err := l.MeasureOutage(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return o.Print(cmd.OutOrStdout())
		},
	}
}

// Print writes the outage for people.
func (o Outage) Print(w io.Writer) error {
	ms := func(d time.Duration) int64 { return d.Milliseconds() }
	for _, p := range o.Probes {
		if _, err := fmt.Fprintf(w, "%s to %s: no answer for %d ms\n", p.From, p.To, ms(p.Outage)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s died; OVN had its gateway ports elsewhere after %d ms\n"+
		"the longest outage was %d ms, %d ms more than OVN's share\n"+
		"the last packet towards %s's tunnel endpoint was sent %d ms after OVN's move\n",
		o.Chassis, ms(o.OVN), ms(o.Worst()), ms(o.Worst()-o.OVN), o.Chassis, ms(o.Last-o.OVN))
	return err
}
