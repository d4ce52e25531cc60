package main

import (
	"context"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/controlplane/taps"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/dataplane/tap"
	"github.com/ovn-sluice/sluice/pkg/beat"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// tapsPart knows the devices of machines' ports, for whatever is done on them. It lives as
// long as the daemon; nil: nobody needs it.
type tapsPart struct {
	d      *daemon
	finder *tap.Finder
	looks  chan struct{} // capacity 1: taps are to be found again

	// Guarded by d.mu.
	interfaces []taps.Interface // whose devices were asked for last
	devices    map[string]taps.Device
	found      uint64 // another number whenever devices has changed
}

const (
	// tapPause is between two looks at the devices: those of a machine change together.
	tapPause = 5 * time.Millisecond
	// tapLook is how often they are looked at without an event, or after a failure.
	tapLook = 10 * time.Second
)

func newTaps(d *daemon) *tapsPart {
	return &tapsPart{d: d, finder: tap.New(netns.Namespace{}), looks: make(chan struct{}, 1)}
}

// lookFor has the devices of the Interfaces of ports looked for, if they are others than
// before. d.mu is held.
func (t *tapsPart) lookFor(rows *ovn.Rows) {
	if t == nil {
		return
	}
	if asked := taps.Interfaces(rows); !slices.Equal(asked, t.interfaces) {
		t.interfaces = asked
		t.look()
	}
}

// lookedFor tells whether the devices of all Interfaces were looked for. The look that finds
// something has the follower tell its rows again. d.mu is held.
func (t *tapsPart) lookedFor() bool {
	return !slices.ContainsFunc(t.interfaces, func(i taps.Interface) bool {
		_, looked := t.devices[i.Name]
		return !looked
	})
}

// look has the taps found again soon.
func (t *tapsPart) look() {
	select {
	case t.looks <- struct{}{}:
	default:
	}
}

// run keeps the devices of the ports' Interfaces up to date. What it finds has the follower
// tell its rows again: they decide what becomes of a device.
func (t *tapsPart) run(ctx context.Context) error {
	if t == nil {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return kernel.WatchLinks(ctx, netns.Namespace{}, func() { t.finder.Forget(); t.look() }) })
	group.Go(func() error {
		tick := beat.New(tapLook)
		defer tick.Stop()
		for {
			t.find()
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(tapPause):
			}
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
				t.finder.Forget()
			case <-t.looks:
			}
		}
	})
	return ignoreEnd(group.Wait())
}

// find looks once. A look that fails leaves what was found before.
func (t *tapsPart) find() {
	t.d.mu.Lock()
	asked := t.interfaces
	t.d.mu.Unlock()
	list := make([]tap.Interface, len(asked))
	for i, one := range asked {
		list[i] = tap.Interface{Name: one.Name, Type: one.Type, Userspace: one.Userspace}
	}
	found, err := t.finder.Find(list)
	if err != nil {
		t.d.log.Warn("the taps of machines cannot be found", "error", err)
		return
	}
	devices := map[string]taps.Device{}
	for i, one := range asked {
		f := found[i]
		devices[one.Name] = taps.Device{Name: f.Name, IfIndex: uint32(f.IfIndex), Reason: string(f.Reason), Detail: f.Detail}
	}
	t.d.mu.Lock()
	same := maps.Equal(devices, t.devices)
	if !same {
		t.devices = devices
		t.found++
	}
	t.d.mu.Unlock()
	if !same {
		t.d.follower.Again()
	}
}
