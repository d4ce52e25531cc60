package tables

import (
	"fmt"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// Clients are the tables of what is balanced on VMs' taps, in a pipeline of their own:
// they need no gateway port and no BGP.
type Clients struct {
	group[*Clients]
	inSync  func() bool
	leaving leaving
	renewed renewals
}

// clientsRelist is how often taps are looked at: programs are taken off without an event.
const clientsRelist = 30 * time.Second

// clientsOrder is that of the tables: a VM's packets find VIPs and their backends.
var clientsOrder = []entry[*Clients]{clientNeighbors, clientVIPs, clients}

var clientNeighbors = table[*Clients, intent.NeighborKey, intent.Neighbor]{
	of: intent.ClientNeighbors, from: fromOVN,
	options: func(c *Clients, _ Options) reconcile.TableOptions[intent.NeighborKey, intent.Neighbor] {
		return reconcile.TableOptions[intent.NeighborKey, intent.Neighbor]{
			Hold:    func(intent.NeighborKey, intent.Neighbor) bool { return !c.inSync() },
			Linger:  func(k intent.NeighborKey, _ intent.Neighbor) bool { return c.deserted(k.Scope) },
			Observe: c.neighborsChanged,
		}
	},
}

var clientVIPs = table[*Clients, intent.VIPKey, intent.VIP]{
	of: intent.ClientVIPs, from: fromOVN,
	options: func(c *Clients, _ Options) reconcile.TableOptions[intent.VIPKey, intent.VIP] {
		return reconcile.TableOptions[intent.VIPKey, intent.VIP]{
			Hold:    func(intent.VIPKey, intent.VIP) bool { return !c.inSync() },
			Linger:  func(k intent.VIPKey, _ intent.VIP) bool { return c.deserted(k.VNI) },
			Await:   c.awaitVIP,
			Gate:    func(k intent.VIPKey, _ intent.VIP) error { return c.renewed.gate(Of(c, intent.ClientVIPs), k) },
			Observe: func(e []reconcile.Event[intent.VIPKey]) { c.renewed.removed(c.Pipeline, Of(c, intent.ClientVIPs), e) },
		}
	},
}

var clients = table[*Clients, intent.TapClientKey, intent.TapClient]{
	of: intent.TapClients, from: fromOVN,
	options: func(c *Clients, _ Options) reconcile.TableOptions[intent.TapClientKey, intent.TapClient] {
		return reconcile.TableOptions[intent.TapClientKey, intent.TapClient]{
			Hold: func(intent.TapClientKey, intent.TapClient) bool { return !c.inSync() }, Linger: c.lingerClient,
		}
	},
}

// NewClients makes the tables, empty. It does no I/O. inSync tells whether the databases of
// OVN are: a row that is not wanted stays until they are.
func NewClients(d Drivers, inSync func() bool, opts Options) *Clients {
	c := &Clients{inSync: inSync, leaving: leaving{now: time.Now, of: map[intent.TapClientKey]left{}}, renewed: renewals{}}
	c.begin(c, clientsOrder, d, opts, clientsRelist)
	c.leaving.wake = func(after time.Duration) { time.AfterFunc(after, c.Pipeline.Kick) }
	return c
}

// Set replaces all rows that OVN asks for. Call it inside an update of the pipeline.
func (c *Clients) Set(all wanted.Set) { c.setAll(c, all) }

// Update changes them. Call it inside an update of the pipeline.
func (c *Clients) Update(d wanted.Difference) {
	c.updateAll(c, d)
	// VMs have left by now that leave with this change: the VIPs of their switch stay for them.
	for _, k := range wanted.Of(d, intent.ClientVIPs).Delete {
		c.renewed.deleted(Of(c, intent.ClientVIPs), k, !c.inSync() || c.deserted(k.VNI))
	}
}

// awaitVIP leaves a VIP as it is until the programs know where frames for all of its
// backends go: they drop what the table leads to another one.
func (c *Clients) awaitVIP(_ intent.VIPKey, v, _ intent.VIP, _ bool) error {
	if v.OVN {
		return nil
	}
	for _, b := range v.Backends.All() {
		k := intent.NeighborKey{Scope: v.Key.VNI, Addr: b.Addr}
		if _, there := Of(c, intent.ClientNeighbors).ActualLocked(k); !there {
			return fmt.Errorf("%w for the MAC address of %s", reconcile.ErrNotReady, k.Addr)
		}
	}
	return nil
}

// neighborsChanged has the VIPs that wait for a backend's row looked at again.
func (c *Clients) neighborsChanged(events []reconcile.Event[intent.NeighborKey]) {
	hit := keysOf(events)
	c.Pipeline.Update(func() {
		Of(c, intent.ClientVIPs).TouchWhere(func(k intent.VIPKey, v intent.VIP) bool {
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
