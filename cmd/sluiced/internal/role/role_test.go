package role

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/translation"
	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type fakeRunner func(context.Context) (gateway.Facts, error)

func (f fakeRunner) Run(ctx context.Context, _ <-chan gateway.Facts) (gateway.Facts, error) {
	return f(ctx)
}

// newRole is that of a node, of which nothing is known, with a configuration.
func newRole(change func(*config.Config)) *Role {
	cfg := config.Default()
	if change != nil {
		change(cfg)
	}
	log := slog.New(slog.DiscardHandler)
	reg := status.NewRegistry(log)
	return New(cfg, "1.0", translation.New(translation.Config{}, nil, reg, log), ovs.New(ovs.Config{}), func(map[string]string) error { return nil }, reg, log)
}

// A start that fails is tried again; a node that fails later is not started anew
// beside what it left running.
func TestNodeThatFailsEndsTheProcess(t *testing.T) {
	r := newRole(nil)
	facts := gateway.Facts{Gateway: true, SystemID: "a1"}
	starts, runs := 0, 0
	r.facts <- facts
	err := r.Run(t.Context(), func(context.Context, gateway.Facts) (Runner, error) {
		if starts++; starts == 1 {
			r.facts <- facts
			return nil, errors.New("no VTEP")
		}
		return fakeRunner(func(context.Context) (gateway.Facts, error) {
			if runs++; runs == 1 {
				return facts, nil // other facts came
			}
			return gateway.Facts{}, errors.New("the ring buffer is broken")
		}), nil
	})
	if err == nil || !strings.Contains(err.Error(), "ring buffer") {
		t.Errorf("error %v", err)
	}
	if starts != 3 || runs != 2 {
		t.Errorf("%d starts and %d runs", starts, runs)
	}
}

// A gateway that ends for facts of a node without a role is followed by the next one, where facts say
// so by then: nothing that is programmed is removed in between.
func TestNewerFactsCountWhenAGatewayHasEnded(t *testing.T) {
	r := newRole(func(c *config.Config) { c.Dataplane.BPFFS = t.TempDir() })
	r.steps.Take(event(allInSync))
	facts, done := gateway.Facts{Gateway: true, SystemID: "a1"}, errors.New("done")
	r.facts <- facts
	starts := 0
	err := r.Run(t.Context(), func(context.Context, gateway.Facts) (Runner, error) {
		starts++
		return fakeRunner(func(context.Context) (gateway.Facts, error) {
			if starts == 2 {
				return gateway.Facts{}, done
			}
			r.facts <- facts
			return gateway.Facts{SystemID: "a1"}, nil
		}), nil
	})
	if !errors.Is(err, done) || starts != 2 {
		t.Errorf("error %v after %d starts", err, starts)
	}
	if c := r.reg.Conditions(); len(c) != 0 {
		t.Errorf("it was looked for what can be removed: %+v", c)
	}
}

func TestEndWhileANodeRunsIsNoError(t *testing.T) {
	r := newRole(nil)
	ctx, stop := context.WithCancel(t.Context())
	r.facts <- gateway.Facts{Gateway: true, SystemID: "a1"}
	err := r.Run(ctx, func(context.Context, gateway.Facts) (Runner, error) {
		stop()
		return nil, ctx.Err()
	})
	if err != nil {
		t.Errorf("error %v", err)
	}
	if c := r.reg.Conditions(); len(c) != 0 {
		t.Errorf("conditions %+v", c)
	}
}
