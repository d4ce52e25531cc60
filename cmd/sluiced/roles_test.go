package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/translation"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/status"
)

type fakeRunner func(context.Context) (nodeFacts, error)

func (f fakeRunner) run(ctx context.Context) (nodeFacts, error) { return f(ctx) }

func idleDaemon() *daemon {
	log := slog.New(slog.DiscardHandler)
	d := &daemon{log: log, reg: status.NewRegistry(log), facts: make(chan nodeFacts, 1), cfg: config.Default(), healthChanged: loop.NewSignal()}
	d.steps = translation.New(translation.Config{}, nil, d.reg)
	return d
}

// sync has the databases of s in sync, by an event that says nothing else.
func (d *daemon) sync(s ovn.InSync) {
	d.steps.Take(ovn.Event{Rows: ovn.NewRows(), InSync: s})
}

// A start that fails is tried again; a node that fails later is not started anew
// beside what it left running.
func TestNodeThatFailsEndsTheProcess(t *testing.T) {
	d := idleDaemon()
	gateway := nodeFacts{gateway: true, systemID: "a1"}
	starts, runs := 0, 0
	d.facts <- gateway
	err := d.runNodes(t.Context(), func(context.Context, nodeFacts) (runner, error) {
		if starts++; starts == 1 {
			d.facts <- gateway
			return nil, errors.New("no VTEP")
		}
		return fakeRunner(func(context.Context) (nodeFacts, error) {
			if runs++; runs == 1 {
				return gateway, nil // other facts came
			}
			return nodeFacts{}, errors.New("the ring buffer is broken")
		}), nil
	})
	if err == nil || !strings.Contains(err.Error(), "ring buffer") {
		t.Errorf("error %v", err)
	}
	if starts != 3 || runs != 2 {
		t.Errorf("%d starts and %d runs", starts, runs)
	}
}

func TestEndWhileANodeRunsIsNoError(t *testing.T) {
	d := idleDaemon()
	ctx, stop := context.WithCancel(t.Context())
	d.facts <- nodeFacts{gateway: true, systemID: "a1"}
	err := d.runNodes(ctx, func(context.Context, nodeFacts) (runner, error) {
		stop()
		return nil, ctx.Err()
	})
	if err != nil {
		t.Errorf("error %v", err)
	}
	if c := d.reg.Conditions(); len(c) != 0 {
		t.Errorf("conditions %+v", c)
	}
}
