package clients

import (
	"maps"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/acl"
	"github.com/ovn-sluice/sluice/controlplane/evpn"
	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/controlplane/taps"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// Config is the part of the node's configuration that the translation reads.
type Config struct {
	// TrustUnknown: a machine whose ACLs are not known is balanced all the same.
	TrustUnknown bool
}

// Needs adds to what other features need of OVN's rows.
func (c Config) Needs(n ovn.Needs) ovn.Needs {
	n.Machines, n.Clients, n.ACLs = true, true, true
	return n
}

// Tables are the intent tables that this package computes.
type Tables struct {
	VIPs      map[intent.VIPKey]intent.VIP
	Neighbors map[intent.NeighborKey]intent.Neighbor
	Clients   map[intent.ClientKey]intent.Client
}

func newTables() Tables {
	return Tables{VIPs: map[intent.VIPKey]intent.VIP{}, Neighbors: map[intent.NeighborKey]intent.Neighbor{}, Clients: map[intent.ClientKey]intent.Client{}}
}

// Difference is the difference of the tables between two steps.
type Difference struct {
	VIPs      evpn.Delta[intent.VIPKey, intent.VIP]
	Neighbors evpn.Delta[intent.NeighborKey, intent.Neighbor]
	Clients   evpn.Delta[intent.ClientKey, intent.Client]
}

// Empty tells whether nothing differs.
func (d Difference) Empty() bool { return d.VIPs.Empty() && d.Neighbors.Empty() && d.Clients.Empty() }

// Balanced is a VIP of a switch, and what serves it.
type Balanced struct {
	// Switch is the switch's name as people know it.
	Switch   string
	Balancer string
	VIP      intent.VIP
	Backends []loadbalancer.Backend
	Choice   loadbalancer.Choice
}

// Machine is a machine of this node on a switch with VIPs, and what balances its flows.
type Machine struct {
	Port, Switch string
	Tap          intent.Tap
	Choice       loadbalancer.Choice
	// State is not OK if the machine lacks a tap that it should have.
	State status.State
}

// Translator keeps what is balanced on taps. It is used by one goroutine at a time.
type Translator struct {
	cfg      Config
	tables   Tables
	balanced []Balanced
	machines []Machine
	objects  []status.Object
	changes  uint64
	stale    bool
	// stepped: both databases were in sync once.
	stepped bool
	book    acl.Book
}

// NewTranslator is one for which nothing is balanced yet.
func NewTranslator(cfg Config) *Translator {
	return &Translator{cfg: cfg, tables: newTables()}
}

// Step computes all that is balanced and returns what differs from the step before. devices
// are those that were found for Interfaces, by the Interface's name. While Southbound is not
// in sync nothing changes, nor does it before Northbound was for the first time; after that
// its rows stay while it is away.
func (t *Translator) Step(rows *ovn.Rows, devices map[string]taps.Device, inSync ovn.InSync) Difference {
	if t.stale = !inSync.SB || !inSync.NB && !t.stepped; t.stale {
		return Difference{}
	}
	t.stepped = true
	b := &build{rows: rows, cfg: t.cfg, book: &t.book, tables: newTables(), taps: taps.Taps{Rows: rows, Devices: devices, Here: map[string]ovn.PortBinding{}}}
	b.compute()
	t.book.Turn()
	t.balanced, t.machines = b.balanced, b.machines
	if !slices.Equal(b.objects, t.objects) {
		t.objects = b.objects
		t.changes++
	}
	diff := Difference{VIPs: evpn.NewDelta(t.tables.VIPs, b.tables.VIPs), Neighbors: evpn.NewDelta(t.tables.Neighbors, b.tables.Neighbors),
		Clients: evpn.NewDelta(t.tables.Clients, b.tables.Clients)}
	t.tables = b.tables
	return diff
}

// Stale tells whether a database was not in sync in the last step, so that there has to be
// another when it is.
func (t *Translator) Stale() bool { return t.stale }

// Tables is a copy of all tables.
func (t *Translator) Tables() Tables {
	return Tables{VIPs: maps.Clone(t.tables.VIPs), Neighbors: maps.Clone(t.tables.Neighbors), Clients: maps.Clone(t.tables.Clients)}
}

// Balanced lists the VIPs of the switches with machines here, sorted.
func (t *Translator) Balanced() []Balanced { return t.balanced }

// Machines lists the machines here on switches with VIPs, by name.
func (t *Translator) Machines() []Machine { return t.machines }

// Complaints is another number whenever Objects has changed.
func (t *Translator) Complaints() uint64 { return t.changes }

// Objects is what is wrong, or held back, or waited for.
func (t *Translator) Objects() []status.Object { return t.objects }
