package metadata

import (
	"maps"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/controlplane/acl"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/controlplane/vmports"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// Translator keeps what is served. It is used by one goroutine at a time.
type Translator struct {
	cfg      Config
	tables   wanted.Set
	ports    []PortStatus
	networks []NetworkStatus
	objects  []status.Object
	agent    ovn.MetadataAgent
	changes  uint64
	stale    bool
	// whole: a step has seen all that OVN has.
	whole bool
	// switches are those with ports here, by the name that their networks have.
	switches map[string]ovn.UUID
	// book has the matches of ACLs, and verdicts what they said last of each port.
	book     acl.Book
	verdicts map[string]acl.Verdict
}

// NewTranslator is one that serves nothing yet.
func NewTranslator(cfg Config) *Translator {
	return &Translator{cfg: cfg, tables: wanted.NewSet(), verdicts: map[string]acl.Verdict{}}
}

// Step computes all that is served and returns what differs from the step before.
// devices are those that were found for Interfaces, by the Interface's name. While
// Southbound is not in sync nothing changes, but for ports that come while it grows. While
// Northbound is not, and ACLs are to be respected, what they said of a port last stays; of
// a port that is new nothing is known.
func (t *Translator) Step(rows *ovn.Rows, devices map[string]intent.TapDevice, inSync ovn.InSync) wanted.Difference {
	t.stale = !inSync.SB || t.cfg.Respect && !inSync.NB
	switch {
	case !inSync.SB && inSync.SBGrows && t.whole && !t.cfg.Respect:
		return t.early(rows, devices)
	case !inSync.SB:
		return wanted.Difference{}
	}
	t.whole = true
	b := &build{rows: rows, cfg: t.cfg, taps: vmports.Taps{Rows: rows, Devices: devices}, book: &t.book, verdicts: map[string]acl.Verdict{}}
	if !inSync.NB {
		b.before = t.verdicts
	}
	b.compute()
	t.verdicts = b.verdicts
	t.book.Turn()
	if next := b.objects(); !slices.Equal(next, t.objects) {
		t.objects = next
		t.changes++
	}
	t.ports, t.networks = nil, nil
	for _, p := range b.ports {
		t.ports = append(t.ports, p.PortStatus)
	}
	for _, n := range b.networks {
		if n != nil && len(n.users) > 0 {
			t.networks = append(t.networks, NetworkStatus{Network: n.name, MetadataPort: n.port.LogicalPort, For: n.users})
		}
	}
	slices.SortFunc(t.networks, func(a, b NetworkStatus) int { return strings.Compare(a.Network, b.Network) })
	t.agent = ovn.MetadataAgent{}
	if id := rows.SystemID(); id != "" {
		t.agent.ID, t.agent.Bridge = AgentID(id), rows.IntegrationBridge()
	}
	if t.agent.Publish = t.cfg.PublishNetworks; t.agent.Publish {
		t.agent.Networks = networksOf(b.tables)
	}
	diff := wanted.Diff(t.tables, b.tables)
	t.tables, t.switches = b.tables, b.switches()
	return diff
}

// early adds what can be served while rows that were asked for are still to come: ports
// that are new, by a tap that no port has, on the network that Neutron names with them.
// All else stays: what is missing may be on its way. The rows of a network that is new here
// take Southbound a while where there are many, and a VM asks in its first second.
func (t *Translator) early(rows *ovn.Rows, devices map[string]intent.TapDevice) wanted.Difference {
	served := wanted.Edit(t.tables, intent.MetadataPorts)
	b := &build{rows: rows, cfg: t.cfg, taps: vmports.Taps{Rows: rows, Devices: devices}, early: true, served: served}
	b.compute()
	added := wanted.Delta[string, intent.MetadataPort]{Set: map[string]intent.MetadataPort{}}
	switches := b.switches()
	for name, datapath := range switches {
		if other, there := t.switches[name]; b.conflict || there && other != datapath {
			return wanted.Difference{} // which of the two has the name is decided when all is known
		}
	}
	claimed := map[claim]bool{}
	for _, p := range served {
		claimed[claimOf(p.Tap)] = true
	}
	for name, p := range wanted.Rows(b.tables, intent.MetadataPorts) {
		if p.Tap != (intent.Tap{}) && p.Instance != "" && !claimed[claimOf(p.Tap)] {
			added.Set[name], served[name] = p, p
		}
	}
	maps.Copy(t.switches, switches)
	if t.agent.Publish {
		t.agent.Networks = networksOf(t.tables)
	}
	return wanted.With(wanted.Difference{}, intent.MetadataPorts, added)
}

// Stale tells whether a database was not in sync in the last step, so that there has to be
// another when it is.
func (t *Translator) Stale() bool { return t.stale }

// Tables is a copy of all tables.
func (t *Translator) Tables() wanted.Set { return t.tables.Pack().Set() }

// Agent is what Neutron is to know of this node, but for whether the proxy is alive, which
// is for whoever watches it to say.
func (t *Translator) Agent() ovn.MetadataAgent { return t.agent }

// Ports lists the ports of VMs here, by name, and how each is served.
func (t *Translator) Ports() []PortStatus { return t.ports }

// Networks lists those that need a namespace, by name, and for which ports.
func (t *Translator) Networks() []NetworkStatus { return t.networks }

// Complaints is another number whenever Objects has changed.
func (t *Translator) Complaints() uint64 { return t.changes }

// Objects is what is wrong, or held back, or waited for.
func (t *Translator) Objects() []status.Object { return t.objects }
