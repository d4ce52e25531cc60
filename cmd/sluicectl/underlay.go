package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/pkg/output"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func underlayCommand(o *options) *cobra.Command {
	return question[status.Underlay]{
		use: "underlay", short: "Prefixes announced as plain unicast, and learned unicast routes: which the node uses, and why not the others",
		ask: source.Underlay, write: writeUnderlay,
	}.command(o)
}

func writeUnderlay(w io.Writer, u status.Underlay) error {
	switch {
	case !u.Install:
		fmt.Fprintln(w, "routes are not installed (underlay.install.enabled)")
	case !u.InSync:
		fmt.Fprintln(w, "not all neighbours have sent their routes")
	}
	if len(u.Announcements) > 0 {
		t := output.Table{Header: []string{"ANNOUNCED", "WHAT", "NOTE"}}
		for _, a := range u.Announcements {
			what, note := "prefix", a.Error
			if a.VTEP {
				what = "VTEP"
			}
			if !a.Announced {
				note = "not announced: " + note
			}
			t.Add(a.Prefix.String(), what, note)
		}
		if err := t.Write(w); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	t := output.Table{Header: []string{"ROUTE", "STATE", "NEXT HOPS", "SOURCE", "METRIC", "NOTE"}}
	for _, r := range u.Routes {
		source, metric, note := "", "", r.Reason+r.Error
		if r.Source.IsValid() {
			source = r.Source.String()
		}
		if r.Metric != 0 {
			metric = fmt.Sprint(r.Metric)
		}
		if r.Stale {
			note = strings.TrimSuffix("stale, "+note, ", ")
		}
		t.Add(r.Prefix.String(), r.State, r.Hops.String(), source, metric, note)
	}
	return t.Write(w)
}
