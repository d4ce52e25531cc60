// Command sluice-lab brings up small OVN clouds in network namespaces, for the
// demo and for trying things by hand.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/ovn-sluice/sluice/test/demo"
	"github.com/ovn-sluice/sluice/test/lab"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	root := lab.NewCommand()
	root.AddCommand(demo.NewCommand())
	err := root.ExecuteContext(ctx)
	stop()
	// The exit code of a command run in a node is the program's own.
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() > 0 {
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sluice-lab:", err)
		os.Exit(1)
	}
}
