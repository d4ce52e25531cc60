package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/pkg/drain"
	"github.com/ovn-sluice/sluice/pkg/output"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func statusCommand(o *options) *cobra.Command {
	return question[status.Status]{
		use: "status", short: "Is the node well, and if not, what and why",
		long: `Is the node well, and if not, what and why.

Each line of the second list is a table between the planes: rows that are wanted, rows
that are there, rows that failed, and how full the eBPF maps are that hold them. HELD says
why nothing is deleted now, and how many wanted rows linger: no source asks for them any
more, and sessions may still need them.

Exit codes: as usual; 3 when the node is not ready, 4 when sluiced does not answer and the
status shows what the pinned maps hold.`,
		ask: source.Status, write: writeStatus, verdict: readiness,
	}.command(o)
}

// readiness: whether the node is ready only a running sluiced knows.
func readiness(s status.Status) error {
	if s.Offline {
		return fmt.Errorf("%w, and only sluiced knows whether the node is ready", errOffline)
	}
	return answerIf(s.Ready)
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
		if c.Name == "drain" {
			state += drainWords(drain.Stage(c.Reason), c.Since)
		}
	}
	if s.Offline {
		state = "sluiced does not answer; this is what the pinned maps hold"
	}
	if s.Chassis != "" {
		state = fmt.Sprintf("sluiced %s on chassis %s: %s", s.Version, s.Chassis, state)
	}
	output.Println(w, state)
	if s.Role != "" {
		output.Printf(w, "role %s (%s)\n", s.Role, s.RoleReason)
	}
	if s.VTEP.IsValid() {
		output.Printf(w, "VTEP %s, router id %s, router MAC %s\n", s.VTEP, s.RouterID, s.RouterMAC)
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
		t.Add(r.Name, count(r.Wanted), fmt.Sprint(r.Actual), count(r.Failed), fills(r.Maps), held(r))
	}
	if err := t.Write(w); err != nil {
		return err
	}
	if s.Offline { // problems are not known
		return nil
	}
	problems := slices.Clone(s.Problems)
	for _, c := range s.Conditions {
		if !c.Ready {
			problems = append(problems, status.Object{State: status.Error, Kind: "component", Key: c.Name, Reason: c.Reason, Error: c.Detail, Since: c.Since})
		}
	}
	return writeProblems(w, problems)
}

// drainWords are what the first line of the status says of a drain: an ordered one is no fault, and
// one that was not ended has to be seen.
func drainWords(stage drain.Stage, since time.Time) string {
	switch stage {
	case drain.Shutdown, drain.Withdrawn:
		return fmt.Sprintf(", being drained (%s)", stage)
	case drain.Drained:
		return fmt.Sprintf(", drained since %s; 'sluicectl undrain' puts it back", age(since))
	}
	return ""
}

// held tells why rows stay that no source asks for.
func held(t status.Table) string {
	if t.Lingering == 0 {
		return t.Held
	}
	words := []string{fmt.Sprintf("%d linger for sessions", t.Lingering)}
	if t.Held != "" {
		words = append(words, t.Held)
	}
	return strings.Join(words, "; ")
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
	for _, g := range alike(once(objects)) {
		shown := g
		if len(g) > mostAlike {
			shown = g[:mostAlike-1]
		}
		for _, p := range shown {
			t.Add(string(p.State), p.Kind, p.Key, p.Reason, age(p.Since), p.Error)
		}
		if more := len(g) - len(shown); more > 0 {
			t.Add(string(g[0].State), g[0].Kind, fmt.Sprintf("%d more", more), g[0].Reason, "", "alike; -o json lists them all")
		}
	}
	return t.Write(w)
}

// once leaves out what has been said: two that read one row say the same of it.
func once(objects []status.Object) (out []status.Object) {
	seen := map[status.Object]bool{}
	for _, p := range objects {
		said := p
		said.Source, said.Since = "", time.Time{}
		if !seen[said] {
			seen[said], out = true, append(out, p)
		}
	}
	return out
}

// mostAlike is how many problems of one kind and reason are written; of more, as
// when Open vSwitch refuses every flow, the number of the others.
const mostAlike = 5

// alike are the problems by state, kind and reason, in the order of their first.
func alike(objects []status.Object) [][]status.Object {
	type cause struct {
		state        status.State
		kind, reason string
	}
	at := map[cause]int{}
	var out [][]status.Object
	for _, p := range objects {
		c := cause{p.State, p.Kind, p.Reason}
		i, seen := at[c]
		if !seen {
			i, at[c] = len(out), len(out)
			out = append(out, nil)
		}
		out[i] = append(out[i], p)
	}
	return out
}

func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no arguments, and was given %q", words(c), args)
	}
	return nil
}
