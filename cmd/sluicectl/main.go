package main

//go:generate sh -c "env -u SLUICE_SOCKET -u SLUICE_BPFFS -u SLUICE_METADATA_SOCKET go run . reference >../../docs/reference/sluicectl.md"

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice"
	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/clidoc"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/output"
)

// Exit codes.
const (
	exitOK       = 0
	exitProblem  = 1 // the command failed
	exitUsage    = 2 // the words of the command are wrong
	exitAnswerNo = 3 // it worked, and the answer is no: not ready, path cut, packet dropped, tables differ
	exitOffline  = 4 // sluiced does not answer, and the answer cannot be had without it; nothing was changed
	exitUnknown  = 5 // sluiced has taken a change, and whether it was carried out is not known
)

// errAnswerNo ends a command whose answer was printed and is no.
var errAnswerNo = errors.New("the answer is no")

// answerIf is the end of a command whose answer is yes or no.
func answerIf(yes bool) error {
	if yes {
		return nil
	}
	return errAnswerNo
}

// options are the flags of all commands.
type options struct {
	socket  string
	timeout time.Duration
	bpffs   string
	output  output.Format
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(output.Writer(os.Stdout))
	root.SetErr(output.Writer(os.Stderr))
	asked, err := root.ExecuteContextC(ctx)
	var usage *usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errAnswerNo):
		return exitAnswerNo
	case errors.As(err, &usage):
		complain(err)
		output.Printf(os.Stderr, "See '%s --help'.\n", asked.CommandPath())
		return exitUsage
	case errors.Is(err, admin.ErrUnknown):
		complain(err)
		return exitUnknown
	case errors.Is(err, errOffline), errors.Is(err, admin.ErrNotRunning), errors.Is(err, admin.ErrLate), errors.Is(err, admin.ErrSilent), errors.Is(err, errProxyAway):
		complain(err)
		return exitOffline
	}
	complain(err)
	return exitProblem
}

// complain writes each line of an error as one of the program's own: what it names is somebody else's text.
func complain(err error) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		output.Printf(os.Stderr, "sluicectl: %s\n", line)
	}
}

func newRoot() *cobra.Command {
	def := config.Default()
	o := &options{}
	root := &cobra.Command{
		Use:   "sluicectl",
		Short: "Show what sluiced does and why",
		Long: `Show what sluiced does and why, drain its node, and clean up after it.

Exit codes: 0 done; 1 failed; 2 wrong usage; 3 done, and the answer is no (not
ready, path cut, packet dropped, tables differ); 4 sluiced does not answer and the
pinned maps alone cannot, or a change was not carried out, and never will be, since
sluiced did not answer; 5 sluiced has accepted a change, and its outcome is unknown
('sluicectl status' and 'lb backends' show it), or the disk did not confirm it. After 4
and 5 the same command may be given again.

'sluicectl completion bash' prints the completion of commands, flags and VNIs for that
shell; zsh, fish and powershell work as well.`,
		Version: version, SilenceUsage: true, SilenceErrors: true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknown(c, args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetVersionTemplate(sluice.VersionLine)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	socket := def.Admin.Socket
	if env := os.Getenv("SLUICE_SOCKET"); env != "" {
		socket = env
	}
	bpffs := def.Dataplane.BPFFS
	if env := os.Getenv("SLUICE_BPFFS"); env != "" {
		bpffs = env
	}
	f := root.PersistentFlags()
	f.StringVar(&o.socket, "socket", socket, "sluiced's socket (also SLUICE_SOCKET)")
	f.DurationVar(&o.timeout, "timeout", admin.Patience, "how long to wait for an answer of sluiced; a change that sluiced has not accepted by then is never carried out")
	f.StringVar(&o.bpffs, "bpffs", bpffs, "directory of the pinned maps (also SLUICE_BPFFS)")
	f.StringVarP((*string)(&o.output), "output", "o", string(output.People), "output format: table, json or yaml")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(output.Formats(), cobra.ShellCompDirectiveNoFileComp))
	root.AddCommand(statusCommand(o), vrfCommand(o), lbCommand(o), routeCommand(o), bgpCommand(o), underlayCommand(o), metadataCommand(o), dropsCommand(o),
		diffCommand(o), explainCommand(o), traceCommand(o), drainCommand(o), undrainCommand(o), adoptCommand(o), cleanupCommand(o), versionCommand(o), clidoc.Command())
	root.InitDefaultCompletionCmd()
	refuseUnknown(root)
	return root
}

// refuseUnknown has the commands that only hold others refuse a word that names
// none of them; cobra prints their help and calls it a success.
func refuseUnknown(c *cobra.Command) {
	for _, sub := range c.Commands() {
		refuseUnknown(sub)
	}
	if c.Runnable() || !c.HasSubCommands() {
		return
	}
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return unknown(c, args[0])
	}
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
}

func unknown(c *cobra.Command, word string) error {
	if c.SuggestionsMinimumDistance == 0 {
		c.SuggestionsMinimumDistance = 2
	}
	asked := strings.TrimSpace(words(c) + " " + word)
	if near := c.SuggestionsFor(word); len(near) > 0 {
		return usagef("unknown command %q; did you mean %s?", asked, strings.Join(near, " or "))
	}
	return usagef("unknown command %q", asked)
}

// words are a command's without the program's, which each line of an error begins with.
func words(c *cobra.Command) string {
	return strings.TrimSpace(strings.TrimPrefix(c.CommandPath(), c.Root().Name()))
}

// flagError says what a flag takes that takes a number: ports and lengths.
func flagError(err error) error {
	if number, ok := errors.AsType[*strconv.NumError](err); ok {
		flag, _, _ := strings.Cut(err.Error(), ": ")
		return usagef("%s: %s is not a number from 0 to 65535", flag, number.Num)
	}
	return &usageError{err}
}

// usageError is a mistake in the command's words.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }
