package balancing

import (
	"context"
	"time"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/plane"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// tapPatience is how long maps of an older layout go on for VMs whose taps are not there.
const tapPatience = 10 * time.Second

// promote changes from maps of an older layout to this build's when they are filled.
func (b *Balancing) promote(ctx context.Context, r *Running) error {
	if !r.Dataplane.Staged() {
		return nil
	}
	const failed = "the new maps of taps cannot take over; the older ones stay in use; trying again"
	if plane.Make(ctx, &promotion{b: b, running: r}, plane.Promotion, failed, b.log) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.note()
	}
	return nil
}

// promotion is that change.
type promotion struct {
	b       *Balancing
	running *Running
	since   time.Time // all else is prepared; zero: it is not
}

// Told tells whether what is wanted is known, and VIPs and neighbors are in place.
func (p *promotion) Told() bool {
	known := p.b.Told() && p.b.node.AllInSync() && p.running.Dataplane.Replaced() &&
		tables.Of(p.running.Tables, intent.ClientVIPs).Settled() && tables.Of(p.running.Tables, intent.ClientNeighbors).Settled()
	if !known {
		p.since = time.Time{}
	}
	return known
}

// Prepared waits for taps that are not there, for as long as tapPatience allows.
func (p *promotion) Prepared() bool {
	if p.since.IsZero() {
		p.since = time.Now()
	}
	return tables.Of(p.running.Tables, intent.TapClients).Settled() || time.Since(p.since) >= tapPatience
}

func (p *promotion) Do(context.Context) error { return p.running.Dataplane.Promote() }
