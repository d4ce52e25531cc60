package tables

import (
	"fmt"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// ClientDrivers are the actual sides of the tables of machines' taps.
type ClientDrivers struct {
	VIPs      reconcile.Driver[intent.VIPKey, intent.VIP]
	Neighbors reconcile.Driver[intent.NeighborKey, intent.Neighbor]
	Clients   reconcile.Driver[intent.ClientKey, intent.Client]
}

// Clients are the tables of what is balanced on machines' taps, in a pipeline of their own:
// they need no gateway port and no BGP.
type Clients struct {
	Pipeline  *reconcile.Pipeline
	Neighbors *reconcile.Table[intent.NeighborKey, intent.Neighbor]
	VIPs      *reconcile.Table[intent.VIPKey, intent.VIP]
	// Clients come last: a machine's packets find VIPs and their backends.
	Clients *reconcile.Table[intent.ClientKey, intent.Client]
	inSync  func() bool
	leaving leaving
}

// clientsRelist is how often taps are looked at: programs are taken off without an event.
const clientsRelist = 30 * time.Second

// NewClients makes the tables, empty. It does no I/O. inSync tells whether the databases of
// OVN are: a row that is not wanted stays until they are.
func NewClients(d ClientDrivers, inSync func() bool, opts Options) *Clients {
	c := &Clients{inSync: inSync, leaving: leaving{now: time.Now, of: map[intent.ClientKey]left{}}}
	c.Neighbors = reconcile.NewTable("client-neighbors", d.Neighbors, reconcile.TableOptions[intent.NeighborKey, intent.Neighbor]{
		Hold:    func(intent.NeighborKey, intent.Neighbor) bool { return !inSync() },
		Linger:  func(k intent.NeighborKey, _ intent.Neighbor) bool { return c.deserted(k.Scope) },
		Observe: observe(opts.Status.Reporter("client-neighbors"), "client-neighbor", c.neighborsChanged),
	})
	c.VIPs = reconcile.NewTable("client-vips", d.VIPs, reconcile.TableOptions[intent.VIPKey, intent.VIP]{
		Hold:    func(intent.VIPKey, intent.VIP) bool { return !inSync() },
		Linger:  func(k intent.VIPKey, _ intent.VIP) bool { return c.deserted(k.VNI) },
		Await:   c.awaitVIP,
		Observe: observe[intent.VIPKey](opts.Status.Reporter("client-vips"), "client-vip", nil),
	})
	c.Clients = reconcile.NewTable("clients", d.Clients, reconcile.TableOptions[intent.ClientKey, intent.Client]{
		Hold:    func(intent.ClientKey, intent.Client) bool { return !inSync() },
		Linger:  c.lingerClient,
		Observe: observe[intent.ClientKey](opts.Status.Reporter("clients"), "client", nil),
	})
	c.Pipeline = reconcile.NewPipeline(reconcile.PipelineOptions{Log: opts.Log, Dry: opts.Dry, RelistEvery: clientsRelist}, c.Neighbors, c.VIPs, c.Clients)
	c.leaving.wake = func(after time.Duration) { time.AfterFunc(after, c.Pipeline.Kick) }
	return c
}

// awaitVIP leaves a VIP as it is until the programs know where frames for all of its
// backends go: they drop what the table leads to another one.
func (c *Clients) awaitVIP(_ intent.VIPKey, v, _ intent.VIP, _ bool) error {
	if v.OVN {
		return nil
	}
	for _, b := range v.Backends.All() {
		k := intent.NeighborKey{Scope: v.Key.VNI, Addr: b.Addr}
		if _, there := c.Neighbors.ActualLocked(k); !there {
			return fmt.Errorf("%w for the MAC address of %s", reconcile.ErrNotReady, k.Addr)
		}
	}
	return nil
}

// neighborsChanged has the VIPs that wait for a backend's row looked at again.
func (c *Clients) neighborsChanged(events []reconcile.Event[intent.NeighborKey]) {
	hit := keysOf(events)
	c.Pipeline.Update(func() {
		c.VIPs.TouchWhere(func(k intent.VIPKey, v intent.VIP) bool {
			for _, b := range v.Backends.All() {
				if hit[intent.NeighborKey{Scope: k.VNI, Addr: b.Addr}] {
					return true
				}
			}
			return false
		})
	})
}

// Held is as Tables.Held.
func (c *Clients) Held(stage reconcile.Stage) string {
	if why := stuck(c.Pipeline, stage); why != "" {
		return why
	}
	if !c.inSync() {
		return "OVN is not in sync"
	}
	return ""
}
