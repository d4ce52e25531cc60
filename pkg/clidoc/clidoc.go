package clidoc

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Command is the hidden command "reference", which prints the page of its root.
func Command() *cobra.Command {
	return &cobra.Command{
		Use: "reference", Hidden: true, Args: cobra.NoArgs, Short: "Print the reference page in Markdown",
		RunE: func(c *cobra.Command, _ []string) error { return Write(c.OutOrStdout(), c.Root()) },
	}
}

// Write writes the page of a program.
func Write(w io.Writer, root *cobra.Command) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "<!-- Code generated from the commands of %s. DO NOT EDIT. -->\n# %s\n\n", root.Name(), root.Name())
	command(b, root)
	_, err := io.WriteString(w, b.String())
	return err
}

func command(b *strings.Builder, c *cobra.Command) {
	if c.HasParent() {
		fmt.Fprintf(b, "## %s\n\n", c.CommandPath())
	}
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	fmt.Fprintf(b, "%s\n\n", text)
	if c.Runnable() && !(c.HasParent() && c.HasSubCommands()) {
		fmt.Fprintf(b, "```\n%s\n```\n\n", c.UseLine())
	}
	rows := &strings.Builder{}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		fmt.Fprintf(rows, "| `%s` | %s | `%s` |\n", name, f.Usage, f.DefValue)
	})
	if rows.Len() > 0 {
		fmt.Fprintf(b, "| flag | meaning | default |\n| --- | --- | --- |\n%s\n", rows)
	}
	for _, sub := range c.Commands() {
		if !sub.Hidden && sub.Name() != "help" && sub.Name() != "completion" {
			command(b, sub)
		}
	}
}
