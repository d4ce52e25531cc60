// Package taps knows the devices of VMs' ports, and runs what is done on them.
package taps

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/controlplane/vmports"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/dataplane/tap"
	"github.com/ovn-sluice/sluice/pkg/beat"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// Taps knows the devices of VMs' ports. It lives as long as the daemon; nil: nobody needs it.
type Taps struct {
	finder *tap.Finder
	again  func()
	log    *slog.Logger
	looks  loop.Signal // taps are to be found again

	mu         sync.Mutex
	interfaces []intent.Interface // whose devices were asked for last
	found      Found
}

// Found is what a look has found. Devices is replaced and never changed.
type Found struct {
	Devices map[string]intent.TapDevice // by the name of the Interface
	// Number is another one whenever Devices is.
	Number uint64
	// Complete: the devices of all Interfaces were looked for.
	Complete bool
}

const (
	// tapPause is between two looks at the devices: those of a VM change together.
	tapPause = 5 * time.Millisecond
	// tapLook is how often they are looked at without an event, or after a failure.
	tapLook = 10 * time.Second
)

// New makes Taps. A look that finds something calls again: OVN's rows decide what becomes of a device.
func New(again func(), log *slog.Logger) *Taps {
	return &Taps{finder: tap.New(netns.Namespace{}), again: again, log: log, looks: loop.NewSignal()}
}

// Take follows the ports of VMs.
func (t *Taps) Take(e ovn.Event) { t.LookFor(e.Rows) }

// LookFor has the devices of the Interfaces of ports looked for, if they are others than before.
func (t *Taps) LookFor(rows *ovn.Rows) {
	if t == nil {
		return
	}
	asked := vmports.Interfaces(rows)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Equal(asked, t.interfaces) {
		t.interfaces = asked
		t.looks.Send()
	}
}

// Found is what the last look has found.
func (t *Taps) Found() Found {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.found
	f.Complete = !slices.ContainsFunc(t.interfaces, func(i intent.Interface) bool {
		_, looked := f.Devices[i.Name]
		return !looked
	})
	return f
}

// Run keeps the devices of the ports' Interfaces up to date until ctx ends.
func (t *Taps) Run(ctx context.Context) error {
	if t == nil {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return kernel.WatchLinks(ctx, netns.Namespace{}, func() { t.finder.Forget(); t.looks.Send() })
	})
	group.Go(func() error {
		tick := beat.New(tapLook)
		defer tick.Stop()
		for {
			t.find()
			if !loop.Sleep(ctx, tapPause) {
				return nil
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
	return loop.IgnoreEnd(group.Wait())
}

// find looks once. A look that fails leaves what was found before.
func (t *Taps) find() {
	t.mu.Lock()
	asked := t.interfaces
	t.mu.Unlock()
	devices, err := t.finder.Find(asked)
	if err != nil {
		t.log.Warn("the taps of VMs cannot be found", "error", err)
		return
	}
	t.Set(devices)
}

// Set is the end of a look that has found the devices.
func (t *Taps) Set(devices map[string]intent.TapDevice) {
	t.mu.Lock()
	same := maps.Equal(devices, t.found.Devices)
	if !same {
		t.found = Found{Devices: devices, Number: t.found.Number + 1}
	}
	t.mu.Unlock()
	if !same {
		t.again()
	}
}
