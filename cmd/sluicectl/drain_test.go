package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/admin/nodeapi"
	"github.com/ovn-sluice/sluice/pkg/intent"
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

// The answer has what is so when it comes: routes that are still to be announced are not announced.
func TestDrainText(t *testing.T) {
	n := status.Known[int]
	for name, tt := range map[string]struct {
		s    status.Drain
		want string
	}{
		"just undrained":    {status.Drain{Stage: "serving", Announced: n(0), Wanted: n(14)}, "this node serves; 0 of 14 routes are announced so far\n"},
		"half-way":          {status.Drain{Stage: "serving", Announced: n(6), Wanted: n(14)}, "this node serves; 6 of 14 routes are announced so far\n"},
		"serves":            {status.Drain{Stage: "serving", Announced: n(14), Wanted: n(14)}, "this node serves (14 routes announced)\n"},
		"nothing to do":     {status.Drain{Stage: "serving", Announced: n(0), Wanted: n(0)}, "this node serves (0 routes announced)\n"},
		"no BGP":            {status.Drain{Stage: "serving"}, "this node serves\n"},
		"drained":           {status.Drain{Stage: "drained", Announced: n(0)}, "drained: no route is announced, and no VRF has traffic (0 routes announced)\n"},
		"an older sluiced":  {status.Drain{Stage: "serving", Announced: n(0)}, "this node serves (0 routes announced)\n"},
		"traffic goes on":   {status.Drain{Stage: "withdrawn", Busy: []intent.VNI{1001}, Announced: n(0)}, "the routes are withdrawn; waiting for traffic to end, in VRFs 1001 (0 routes announced)\n"},
		"routes on the way": {status.Drain{Stage: "withdrawn", Announced: n(3)}, "the routes are being withdrawn (3 routes announced)\n"},
	} {
		var got strings.Builder
		if err := writeDrain(&got, tt.s); err != nil || got.String() != tt.want {
			t.Errorf("%s: %q, %v, want %q", name, got.String(), err, tt.want)
		}
	}
}
