package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/pkg/output"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func statusCommand(o *options) *cobra.Command {
	return question[status.Status]{
		use: "status", short: "Is the node well, and if not, what and why",
		ask: source.Status, write: writeStatus, no: func(s status.Status) bool { return !s.Ready },
	}.command(o)
}

func writeStatus(w io.Writer, s status.Status) error {
	state := "ready"
	if !s.Ready {
		state = "NOT READY"
	}
	for _, c := range s.Conditions {
		if s.Ready && c.Name == "bgp" && !c.Ready {
			state += ", but BGP is not: " + c.Reason
		}
	}
	if s.Offline {
		state = "sluiced is not running; this is what the pinned maps hold"
	}
	if s.Chassis != "" {
		state = fmt.Sprintf("sluiced %s on chassis %s: %s", s.Version, s.Chassis, state)
	}
	fmt.Fprintln(w, state)
	if s.Role != "" {
		fmt.Fprintf(w, "role %s (%s)\n", s.Role, s.RoleReason)
	}
	if s.VTEP.IsValid() {
		fmt.Fprintf(w, "VTEP %s, router id %s, router MAC %s\n", s.VTEP, s.RouterID, s.RouterMAC)
	}
	if len(s.Conditions) > 0 {
		fmt.Fprintln(w)
		t := output.Table{Header: []string{"COMPONENT", "READY", "REASON", "SINCE", "DETAIL"}}
		for _, c := range s.Conditions {
			t.Add(c.Name, yes(c.Ready), c.Reason, age(c.Since), c.Detail)
		}
		if err := t.Write(w); err != nil {
			return err
		}
	}
	fmt.Fprintln(w)
	t := output.Table{Header: []string{"TABLE", "WANTED", "ACTUAL", "FAILED", "MAPS", "HELD"}}
	for _, r := range s.Tables {
		t.Add(r.Name, fmt.Sprint(r.Wanted), fmt.Sprint(r.Actual), fmt.Sprint(r.Failed), fills(r.Maps), r.Held)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	problems := slices.Clone(s.Problems)
	for _, c := range s.Conditions {
		if !c.Ready {
			problems = append(problems, status.Object{State: status.Error, Kind: "component", Key: c.Name, Reason: c.Reason, Error: c.Detail, Since: c.Since})
		}
	}
	return writeProblems(w, problems)
}

// fills tells of each map how many of its rows are in use.
func fills(maps []status.MapFill) string {
	words := make([]string, len(maps))
	for i, m := range maps {
		words[i] = fmt.Sprintf("%s %d/%d", m.Name, m.Used, m.Size)
	}
	return strings.Join(words, ", ")
}

func writeProblems(w io.Writer, objects []status.Object) error {
	if len(objects) == 0 {
		_, err := fmt.Fprintln(w, "\nno problems")
		return err
	}
	fmt.Fprintln(w)
	t := output.Table{Header: []string{"STATE", "KIND", "OBJECT", "REASON", "SINCE", "WHAT"}}
	for _, p := range objects {
		t.Add(string(p.State), p.Kind, p.Key, p.Reason, age(p.Since), p.Error)
	}
	return t.Write(w)
}

func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no arguments, and was given %q", c.CommandPath(), args)
	}
	return nil
}
