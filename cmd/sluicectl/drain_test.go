package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/admin/nodeapi"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// sluiced takes the drain and ends: that is not the exit code of a change that was not made.
func TestDrainTakenAndNoAnswer(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "sluiced.sock")
	running, stop := context.WithCancel(t.Context())
	s := admin.NewServer(nodeapi.Program, socket, slog.New(slog.DiscardHandler))
	admin.Handle(s, nodeapi.GetDrain, func(context.Context, admin.Nothing) (status.Drain, error) { return status.Drain{}, nil })
	admin.Handle(s, nodeapi.Drain, func(context.Context, nodeapi.DrainRequest) (status.Drain, error) {
		stop()
		return status.Drain{}, nil
	})
	ended := make(chan error, 1)
	go func() { ended <- s.Run(running) }()
	o := options{socket: socket}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := admin.Call(t.Context(), o.client(), nodeapi.GetDrain, admin.Nothing{}); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if got := run(t.Context(), []string{"--socket", socket, "drain", "--wait", "1m"}); got != exitUnknown {
		t.Errorf("exit code %d, want %d", got, exitUnknown)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
