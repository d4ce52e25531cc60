package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

// Adopt and cleanup change objects of the node, one by one, in the place of sluiced.

// withoutDaemon calls do while sluiced does not run, and cannot be started.
func withoutDaemon(o *options, cfg *config.Config, do func() error) error {
	if newDaemon(o).running() {
		return fmt.Errorf("sluiced is running (%s answers); stop it first", o.socket)
	}
	lock, err := admin.AcquireLock(cfg.StateDir, "sluiced")
	if err != nil {
		return fmt.Errorf("state directory %s: %w", cfg.StateDir, err)
	}
	defer func() { _ = lock.Release() }()
	return do()
}

// object is one of those.
type object struct {
	what string
	do   func(context.Context) error
}

// doEach does all, each whatever became of those before it, and gives for each why it
// could not be done: empty if it was. The error is all of that; objects that follow each other
// and failed for one reason are one line of it.
func doEach(ctx context.Context, objects []object) (failed []string, err error) {
	var errs []error
	var first, why string
	more := 0
	flush := func() {
		switch {
		case why == "":
		case more == 0:
			errs = append(errs, fmt.Errorf("%s: %s", first, why))
		default:
			errs = append(errs, fmt.Errorf("%s, and %d others: %s", first, more, why))
		}
		first, why, more = "", "", 0
	}
	for _, o := range objects {
		now := try(ctx, o)
		failed = append(failed, now)
		if now != "" && now == why {
			more++
			continue
		}
		flush()
		first, why = o.what, now
	}
	flush()
	return failed, errors.Join(errs...)
}

// patience is how long one object may take, or looking for all of them.
const patience = time.Minute

func try(ctx context.Context, o object) (why string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := o.do(ctx); err != nil {
		return err.Error()
	}
	return ""
}

// onSwitch calls do with the local Open vSwitch, whose database was read once. unread is
// why it could not be: what needs no switch can be done all the same.
func onSwitch(ctx context.Context, cfg *config.Config, do func(ctx context.Context, sw *ovs.Switch, unread error) error) error {
	tls := cfg.OVN.TLS
	sw, session, err := ovs.Open(ovs.Config{RunDir: cfg.OVS.RunDir}, ovsdb.Config{
		Endpoints: cfg.OVN.VSwitch, TLS: ovsdb.TLSFiles{Cert: tls.Certificate, Key: tls.PrivateKey, CA: tls.CACert},
	})
	if err != nil {
		return fmt.Errorf("local Open vSwitch database: %w", err)
	}
	running, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); _ = session.Run(running) }()
	defer func() { stop(); <-done }()
	unread := cfg.LocalDatabase()
	if unread == nil {
		wait, cancelWait := context.WithTimeout(ctx, 10*time.Second)
		defer cancelWait()
		if err := sw.WaitRead(wait); err != nil {
			unread = fmt.Errorf("local Open vSwitch database %s: %w", cfg.OVN.VSwitch, errors.Join(err, session.Status().LastError))
		}
	}
	return do(ctx, sw, unread)
}
