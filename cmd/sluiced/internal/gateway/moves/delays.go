package moves

import (
	"sync"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// Delays are the announcements that OVN asked for and BGP was not told yet, with
// OVN's event that asked for them.
type Delays struct {
	mu    sync.Mutex
	since map[intent.RouteKey]Asked
}

// Asked is the event that asked for an announcement.
type Asked struct {
	Event   uint64 // its number
	Arrived time.Time
}

// Changed notes what a step asks for. What already waits has waited longer.
func (d *Delays) Changed(step wanted.Delta[intent.RouteKey, intent.Announcement], asked Asked) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range step.Delete {
		delete(d.since, k)
	}
	for k := range step.Set {
		if d.since == nil {
			d.since = map[intent.RouteKey]Asked{}
		}
		if _, waits := d.since[k]; !waits {
			d.since[k] = asked
		}
	}
}

// Announced ends the waits of the keys that BGP was told, and tells each.
func (d *Delays) Announced(events []reconcile.Event[intent.RouteKey], observe func(intent.RouteKey, Asked)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range events {
		if asked, waits := d.since[e.Key]; waits && e.Programmed {
			delete(d.since, e.Key)
			observe(e.Key, asked)
		}
	}
}

// Programmed tells of the routes that were programmed and are still to be announced.
func (d *Delays) Programmed(events []reconcile.Event[intent.RouteKey], tell func(intent.RouteKey, Asked)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range events {
		if asked, waits := d.since[e.Key]; waits && e.Programmed {
			tell(e.Key, asked)
		}
	}
}
