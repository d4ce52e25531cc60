package main

import (
	"errors"
	"io"
	"net/netip"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/pkg/output"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func explainCommand(o *options) *cobra.Command {
	var vrf string
	c := &cobra.Command{
		Use:   "explain --vrf VNI SRC DST",
		Short: "Whether packets from SRC reach DST: every row on the path, and the one that is missing",
		Long: "Whether packets from SRC reach DST: every row on the path, and the one that is missing.\n" +
			"SRC is a VM behind this node. For packets from the fabric to the VM, give SRC and DST of the VM's answers.",
		Args: exactArgs("SRC", "DST"), ValidArgsFunction: noCompletion,
		RunE: func(c *cobra.Command, args []string) error {
			q, err := parseQuery(vrf, args)
			if err != nil {
				return err
			}
			e, err := o.source(c.ErrOrStderr()).Explain(c.Context(), q)
			if err != nil {
				return err
			}
			if err := o.print(c.OutOrStdout(), e, func(w io.Writer) error { return errors.Join(writeExplanation(w, e), writeNotes(w, e.Notes)) }); err != nil {
				return err
			}
			if !e.Works {
				return errAnswerNo
			}
			return nil
		},
	}
	o.vrfFlag(c, &vrf, "the tenant's VNI")
	return c
}

func writeNotes(w io.Writer, notes []string) (err error) {
	for _, n := range notes {
		_, failed := output.Printf(w, "\nNote: %s.\n", n)
		err = errors.Join(err, failed)
	}
	return err
}

func parseQuery(vrf string, args []string) (status.Query, error) {
	vni, err := parseVNI(vrf)
	if err != nil {
		return status.Query{}, err
	}
	q, err := parseEnds(args)
	q.VRF = vni
	return q, err
}

// parseEnds reads the source and the destination of a packet.
func parseEnds(args []string) (q status.Query, err error) {
	if q.Src, err = netip.ParseAddr(args[0]); err != nil {
		return q, usagef("source %q is not an IP address", args[0])
	}
	if q.Dst, err = netip.ParseAddr(args[1]); err != nil {
		return q, usagef("destination %q is not an IP address", args[1])
	}
	if q.Src.Is4() != q.Dst.Is4() {
		return q, usagef("source and destination are of different IP versions")
	}
	return q, nil
}

func writeExplanation(w io.Writer, e status.Explanation) error {
	stale := slices.ContainsFunc(e.Steps, func(s status.Step) bool { return s.Stale })
	if err := writeSteps(w, e.Steps); err != nil {
		return err
	}
	if e.Works && e.InsideOVN {
		_, err := output.Printf(w, "\nOVN forwards from %s to %s itself; Sluice never sees the packets.\n", e.Src, e.Dst)
		return err
	}
	if e.Works && stale {
		_, err := output.Printf(w, "\nThis node forwards from %s to %s in VRF %s. The source of what is marked stale is gone or out of sync.\n", e.Src, e.Dst, e.VRF)
		return err
	}
	if e.Works {
		_, err := output.Printf(w, "\nThe path from %s to %s in VRF %s is complete on this node.\n", e.Src, e.Dst, e.VRF)
		return err
	}
	if s, ok := e.Missing(); ok {
		output.Printf(w, "\nThe path is cut at: %s. %s\n", s.Object, s.Detail)
		if s.Hint != "" {
			output.Printf(w, "%s\n", s.Hint)
		}
	}
	return nil
}

func writeSteps(w io.Writer, steps []status.Step) error {
	t := output.Table{Header: []string{"", "LAYER", "OBJECT", "DETAIL"}}
	for _, s := range steps {
		mark := "ok"
		switch {
		case s.Stale:
			mark = "stale"
		case !s.Found:
			mark = "MISSING"
		}
		t.Add(mark, string(s.Layer), s.Object, s.Detail)
	}
	return t.Write(w)
}
