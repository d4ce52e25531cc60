package dryrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/output"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

const (
	// timeout bounds the wait for the databases, connectPatience that for a
	// connection to one.
	timeout         = time.Minute
	connectPatience = 10 * time.Second
	// quiet is how long it waits without a word.
	quiet = 2 * time.Second
)

// preflight tells of the configuration what could not be used on this node, before
// anything is waited for.
func preflight(cfg *config.Config) error {
	_, err := settings.BGP(cfg, settings.Identity{}, false)
	return errors.Join(cfg.LocalDatabase(), cfg.Files(), err)
}

// waitInSync waits until everything that the intent is computed from is read, or
// cannot be. It says in notes what it waits for.
func (d dryRun) waitInSync(ctx context.Context, notes io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	start, said := time.Now(), false
	for !d.Steps.AllInSync() || !d.Metadata.Told() || !d.Balancing.Told() {
		waited := time.Since(start)
		if errs := d.hopeless(waited); len(errs) > 0 {
			return errors.Join(errs...)
		}
		if !said && waited > quiet {
			said = true
			output.Printf(notes, "waiting for %s\n", strings.ReplaceAll(errors.Join(d.unread()...).Error(), "\n", "; "))
		}
		if !loop.Sleep(ctx, 20*time.Millisecond) {
			return errors.Join(append([]error{fmt.Errorf("reading OVN: %w", ctx.Err())}, d.unread()...)...)
		}
	}
	return nil
}

// hopeless is what no wait mends.
func (d dryRun) hopeless(waited time.Duration) []error {
	s := d.Follower.Status()
	var errs []error
	for _, err := range []error{s.SBErr, s.NBErr} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	if s.InSync.VSwitch && s.SystemID == "" {
		errs = append(errs, errors.New("Open_vSwitch.external_ids:system-id is not set"))
	}
	southbound := false
	for _, session := range s.Sessions {
		southbound = southbound || session.Database == "OVN_Southbound"
		if !session.Connected && session.LastError != nil && waited > connectPatience {
			errs = append(errs, sessionError(session))
		}
	}
	if s.InSync.VSwitch && !southbound && waited > quiet {
		errs = append(errs, errors.New("Open_vSwitch.external_ids:ovn-remote is not set, and neither is ovn.sb"))
	}
	return errs
}

// unread are the databases that are not read yet.
func (d dryRun) unread() []error {
	var errs []error
	for _, session := range d.Follower.Status().Sessions {
		if !session.InSync {
			errs = append(errs, sessionError(session))
		}
	}
	if len(errs) == 0 && d.Steps.AllInSync() {
		errs = append(errs, errors.New("the taps of VMs have not been read"))
	}
	if len(errs) == 0 {
		errs = append(errs, errors.New("the rows of OVN that this node needs have not arrived"))
	}
	return errs
}

func sessionError(s ovsdb.Status) error {
	at := ""
	if s.Endpoint != "" {
		at = " at " + s.Endpoint
	}
	if s.Connected {
		return fmt.Errorf("database %s%s: its rows have not arrived", s.Database, at)
	}
	return fmt.Errorf("database %s%s: %w", s.Database, at, cmp.Or(s.LastError, ovsdb.ErrNotConnected))
}
