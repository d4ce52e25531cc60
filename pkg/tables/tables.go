package tables

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// Sources tell whether what a table is computed from is complete. They are
// called with the pipeline's lock held, and without it.
type Sources struct {
	OVN func() bool // Southbound and local databases
	BGP func() bool // every neighbour has sent its End-of-RIB, or has run out of time
	// Pending: Northbound rows that decide what a VRF exposes are still to come.
	Pending func(intent.VNI) bool
	// Lingers: the next hops of a route that BGP no longer shows may come back.
	Lingers func(hops intent.NextHopSet, known func(netip.Addr) bool) bool
	// Better, when set, tells whether another node announces the route, too.
	Better func(intent.RouteKey) bool
	// LearnedBy is the VRF whose imported routes a routing table gets; false if it gets
	// none. It may be nil where LearnedRoutes has no driver.
	LearnedBy func(table uint32) (intent.VNI, bool)
	// Turn, when set, tells why no VRF may change its path now; nil when one may. See
	// TurnCame.
	Turn func() error
	// Kept, when set, tells whether the index of a VRF outlives the process. Until it does
	// the VRF stays as it is: see IndicesKept.
	Kept func(intent.VNI) bool
	// Fabric, when set, tells why packets of the fabric to a VRF would be lost before
	// any row counts; nil when they would not.
	Fabric func(intent.VNI) error
}

// Options are what tables need beside drivers and sources.
type Options struct {
	// Status is told of the rows that fail.
	Status *status.Registry
	Log    *slog.Logger
	// Dry: only compare.
	Dry bool
	// Backends is how many rows BackendRoutes has room for.
	Backends int
	// Passed, when set, is told how long each pass took.
	Passed func(time.Duration)
	// Routed, when set, is told what became of rows of Routes.
	Routed func([]reconcile.Event[intent.RouteKey])
	// Announced, when set, is told what became of announcements.
	Announced func([]reconcile.Event[intent.RouteKey])
}

// Tables are the wanted and actual tables of a gateway node, in the order of order.
type Tables struct {
	group[*Tables]
	src Sources
	// paths says which tables have the routes of a VRF, where that is not Routes
	// alone. Guarded by the pipeline.
	paths   map[intent.VNI]carried
	moves   *moves
	ways    *ways
	renewed renewals
}

// New makes the tables, empty. It does no I/O.
func New(d Drivers, src Sources, opts Options) *Tables {
	t := &Tables{src: src, paths: map[intent.VNI]carried{}, moves: newMoves(), ways: newWays(opts.Backends), renewed: renewals{}}
	t.begin(t, order, d, opts, 0)
	return t
}

// Set replaces all rows that OVN asks for. Call it inside an update of the pipeline.
func (t *Tables) Set(all wanted.Set) { t.setAll(t, all) }

// Update changes them. Call it inside an update of the pipeline.
func (t *Tables) Update(d wanted.Difference) { t.updateAll(t, d) }

// Settled tells whether no row waits for its turn that the change-over to a path waits for: all
// but those of the VRFs, which change over, and of their flows.
func (t *Tables) Settled(p intent.Path) bool {
	for _, e := range t.order {
		if !e.Settled(t, p) {
			return false
		}
	}
	return true
}

// holdKernel keeps rows of the kernel path until OVN is in sync, and while their VRF is still on it.
func (t *Tables) holdKernel(vni intent.VNI) bool {
	return !t.src.OVN() || t.moves.vrf(vni) || t.onOtherPath(vni, intent.PathKernel)
}

// observe reports failures as objects of their own and passes the keys on.
func observe[K comparable](rep *status.Reporter, kind string, changed func([]reconcile.Event[K])) func([]reconcile.Event[K]) {
	return func(events []reconcile.Event[K]) {
		for _, e := range events {
			if e.Err == nil || errors.Is(e.Err, reconcile.ErrNotReady) {
				rep.Delete(kind, fmt.Sprint(e.Key))
				continue
			}
			rep.Set(status.Object{Kind: kind, Key: fmt.Sprint(e.Key), State: status.Error, Reason: ReasonOf(e.Err), Error: e.Err.Error()})
		}
		if changed != nil {
			changed(events)
		}
	}
}

// alsoWaits reports what waits for too long before it passes the keys on.
func alsoWaits[K, O comparable](waits *waits[K, O], changed func([]reconcile.Event[K])) func([]reconcile.Event[K]) {
	return func(events []reconcile.Event[K]) {
		waits.observe(events)
		changed(events)
	}
}
