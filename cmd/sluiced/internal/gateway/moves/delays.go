package moves

import (
	"sync"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// Delays are the announcements that OVN asked for and BGP was not told yet, with
// the time when OVN's change arrived.
type Delays struct {
	mu    sync.Mutex
	since map[intent.RouteKey]time.Time
}

// Changed notes what a step asks for. What already waits has waited longer.
func (d *Delays) Changed(step wanted.Delta[intent.RouteKey, intent.Announcement], arrived time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range step.Delete {
		delete(d.since, k)
	}
	for k := range step.Set {
		if d.since == nil {
			d.since = map[intent.RouteKey]time.Time{}
		}
		if _, waits := d.since[k]; !waits {
			d.since[k] = arrived
		}
	}
}

// Announced ends the waits of the keys that BGP was told, and tells each.
func (d *Delays) Announced(events []reconcile.Event[intent.RouteKey], observe func(time.Duration)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range events {
		if since, waits := d.since[e.Key]; waits && e.Programmed {
			delete(d.since, e.Key)
			observe(time.Since(since))
		}
	}
}
