package main

import (
	"context"
	"fmt"
	"os"
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
	if err != nil {
		fmt.Fprintln(os.Stderr, "sluice-lab:", err)
		os.Exit(1)
	}
}
