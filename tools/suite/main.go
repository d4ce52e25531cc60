// Command suite runs the project's checks and tests.
//
//	suite quick                        what a change usually breaks, in minutes
//	suite test [PACKAGE...]            what has to pass before a change is taken
//	suite nightly [PACKAGE...]         everything, and longer
//	suite list                         what test leaves to the night unless a path has changed
//	suite list PACKAGE...              what the tests of packages are built of, and run
//
// plan.go says which tests run when. Parts that leave a processor idle run side by side; parts that
// count packets run alone. The whole output is in build/test.log, the text of failed tests also on the
// standard output, which ends with a line for each package.
//
// SLUICE_BASE names the commit to compare with, for the tests that run only when a path has changed:
// by default the merge base with the remote's default branch. Where that is HEAD itself, or cannot be
// told, all of them run.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	if len(args) == 0 || !slices.Contains([]string{"quick", "test", "nightly", "list"}, args[0]) {
		return fmt.Errorf("usage: suite quick|test|nightly|list [PACKAGE...]")
	}
	if args[0] == "list" {
		text, err := table(), error(nil)
		if len(args) > 1 {
			text, err = listOf(args[1:])
		}
		fmt.Fprint(out, text)
		return err
	}
	var paths changed
	if args[0] == "test" {
		paths = changedPaths(ctx)
		fmt.Fprintf(out, "%s\n%s", paths, paths.leftOut())
	}
	s, err := plan(args[0], args[1:], paths)
	if err != nil {
		return err
	}
	r, err := newRunner(out)
	if err != nil {
		return err
	}
	return r.run(ctx, s)
}
