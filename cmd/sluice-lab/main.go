package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/ovn-sluice/sluice"
	"github.com/ovn-sluice/sluice/pkg/output"
	"github.com/ovn-sluice/sluice/test/demo"
	"github.com/ovn-sluice/sluice/test/lab"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	root := lab.NewCommand()
	root.Version = sluice.Version()
	root.SetVersionTemplate(sluice.VersionLine)
	root.AddCommand(demo.NewCommand())
	root.SetOut(output.Writer(os.Stdout))
	root.SetErr(output.Writer(os.Stderr))
	err := root.ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(output.Writer(os.Stderr), "sluice-lab:", err)
		os.Exit(1)
	}
}
