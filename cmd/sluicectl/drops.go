package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/pkg/output"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func dropsCommand(o *options) *cobra.Command {
	var follow, all bool
	c := &cobra.Command{
		Use:   "drops",
		Short: "Dropped packets by reason; with --follow, samples of them as they are dropped",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			src := o.source(c.ErrOrStderr())
			if follow {
				fmt.Fprintln(c.ErrOrStderr(), "waiting for dropped packets; interrupt to end")
				return src.FollowDrops(c.Context(), func(d status.Drop) error { return o.printDrop(c.OutOrStdout(), d) })
			}
			d, err := src.Drops(c.Context())
			if err != nil {
				return err
			}
			return o.print(c.OutOrStdout(), d, func(w io.Writer) error { return writeDrops(w, d, all) })
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "print samples until interrupted")
	c.Flags().BoolVarP(&all, "all", "a", false, "reasons without packets, too")
	return c
}

func writeDrops(w io.Writer, d status.Drops, all bool) error {
	t := output.Table{Header: []string{"REASON", "PACKETS", "PROGRAM", "MEANING"}}
	for _, c := range d.Counts {
		if c.Packets > 0 || all {
			t.Add(c.Reason, fmt.Sprint(c.Packets), cmp.Or(c.Program, "-"), c.Description)
		}
	}
	if len(t.Rows) == 0 {
		_, err := fmt.Fprintln(w, "no drops")
		return err
	}
	return t.Write(w)
}

func (o *options) printDrop(w io.Writer, d status.Drop) error {
	if o.output == output.JSON {
		return json.NewEncoder(w).Encode(d)
	}
	_, err := output.Printf(w, "%s %-22s %s on %s vni %s: %s > %s %s, %d bytes\n", d.Time.Format("15:04:05.000"),
		d.Reason, d.Program, d.Interface, d.VNI, endpoint(d.Src, d.SrcPort), endpoint(d.Dst, d.DstPort), protocolWord(d.Protocol), d.Length)
	return err
}

func protocolWord(p uint8) string {
	switch p {
	case 1:
		return "icmp"
	case 58:
		return "icmpv6"
	case protocolTCP:
		return "tcp"
	case protocolUDP:
		return "udp"
	}
	return fmt.Sprintf("protocol %d", p)
}

func endpoint(a netip.Addr, port uint16) string {
	if !a.IsValid() {
		return "?"
	}
	if port == 0 {
		return a.String()
	}
	return netip.AddrPortFrom(a, port).String()
}
