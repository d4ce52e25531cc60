package drain

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/role"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/translation"
	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/admin/nodeapi"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/drain"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// idle is the drain of a node of which nothing is known.
func idle(t *testing.T, log *slog.Logger) *Drain {
	t.Helper()
	state, err := drain.Open(filepath.Join(t.TempDir(), "drain.json"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	reg := status.NewRegistry(slog.New(slog.DiscardHandler))
	r := role.New(config.Default(), "1.0", translation.New(translation.Config{}, nil, reg, log), nil, nil, reg, log)
	return New(state, r, func() bool { return true }, reg, log)
}

// A drain that was made and that the disk did not confirm is followed at once, and its outcome is
// not known to who asked; one that was not made is followed by nobody.
func TestDrainNotOnDisk(t *testing.T) {
	for _, row := range []struct {
		err              error
		unknown, follows bool
	}{
		{fmt.Errorf("the drain was begun: %w", drain.ErrNotOnDisk), true, true},
		{errors.New("no space left"), false, false},
	} {
		d := idle(t, slog.New(slog.DiscardHandler))
		_, err := d.change(row.err, "the node is drained")
		if !errors.Is(err, row.err) || errors.Is(err, admin.ErrUnknown) != row.unknown || (len(d.changed) == 1) != row.follows {
			t.Errorf("%v: %v, followed %t", row.err, err, len(d.changed) == 1)
		}
	}
}

// The log tells each stage of a drain when it is reached, and once.
func TestDrainProgress(t *testing.T) {
	const withdraws, drained = "the node withdraws its routes and waits for traffic to end", "the node is drained"
	first, second := time.Unix(1_700_000_000, 0), time.Unix(1_700_000_100, 0)
	var p progress
	for i, step := range []struct {
		s    drain.Status
		want string
	}{
		{drain.Status{Stage: drain.Serving}, ""},
		{drain.Status{Stage: drain.Shutdown, WithdrawAt: first}, ""},
		{drain.Status{Stage: drain.Withdrawn, WithdrawAt: first}, withdraws},
		{drain.Status{Stage: drain.Withdrawn, WithdrawAt: first}, ""},
		{drain.Status{Stage: drain.Drained, WithdrawAt: first}, drained},
		{drain.Status{Stage: drain.Withdrawn, WithdrawAt: first}, ""}, // traffic came again
		{drain.Status{Stage: drain.Drained, WithdrawAt: first}, ""},
		{drain.Status{Stage: drain.Drained, WithdrawAt: second}, drained}, // it was asked for anew
		{drain.Status{Stage: drain.Serving}, ""},
		{drain.Status{Stage: drain.Withdrawn, WithdrawAt: second}, withdraws},
	} {
		if got := p.message(step.s); got != step.want {
			t.Errorf("step %d, %s: %q, want %q", i, step.s.Stage, got, step.want)
		}
	}
}

// The log has the beginning of a drain and its end, and nothing of an end that changes nothing.
func TestLogOfADrain(t *testing.T) {
	var text bytes.Buffer
	d := idle(t, slog.New(slog.NewTextHandler(&text, nil)))
	undrain := func() {
		t.Helper()
		if s, err := d.End(t.Context(), admin.Nothing{}); err != nil || s.Stage != string(drain.Serving) {
			t.Fatalf("%+v, %v", s, err)
		}
	}
	undrain()
	if text.Len() > 0 {
		t.Errorf("an end that changes nothing: %s", &text)
	}
	if s, err := d.Begin(t.Context(), nodeapi.DrainRequest{WithdrawAfter: time.Hour}); err != nil || s.Stage != string(drain.Shutdown) {
		t.Fatalf("%+v, %v", s, err)
	}
	if got := text.String(); !strings.Contains(got, `msg="the drain begins" withdraw_after=1h0m0s`) || strings.Contains(got, "is drained") {
		t.Errorf("the beginning: %s", got)
	}
	text.Reset()
	undrain()
	if got := text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "the drain ends") {
		t.Errorf("the end: %s", got)
	}
}
