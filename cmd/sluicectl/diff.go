package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/pkg/output"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func diffCommand(o *options) *cobra.Command {
	return question[status.Diff]{
		use: "diff", short: "What sluiced would change now: wanted against actual",
		long: "What sluiced would change now: wanted against actual. Exit code 3: there is a difference.",
		ask:  source.Diff, write: writeDiff, verdict: func(d status.Diff) error { return answerIf(len(d.Changes) == 0) },
	}.command(o)
}

func writeDiff(w io.Writer, d status.Diff) error {
	if len(d.Changes) == 0 {
		_, err := fmt.Fprintln(w, "no difference")
		return err
	}
	return output.Changes(d.Changes).Write(w)
}
