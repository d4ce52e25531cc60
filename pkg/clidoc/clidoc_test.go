package clidoc

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestWrite(t *testing.T) {
	root := &cobra.Command{Use: "tool", Short: "A tool"}
	sub := &cobra.Command{Use: "act THING", Short: "Act on it", RunE: func(*cobra.Command, []string) error { return nil }}
	sub.Flags().BoolP("all", "a", false, "on all")
	root.AddCommand(sub, Command())
	var b strings.Builder
	if err := Write(&b, root); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# tool", "## tool act", "tool act THING [flags]", "| `-a, --all` | on all | `false` |"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "reference") {
		t.Error("a hidden command is shown")
	}
}
