// Package metadata steers the metadata requests of this node's VMs to the proxy.
package metadata

import (
	"log/slog"
	"sync"
	"time"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/taps"
	translation "github.com/ovn-sluice/sluice/controlplane/metadata"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// Config is what the configuration says of metadata.
type Config struct {
	config.Metadata
	Translator translation.Config
	// Northbound: ACLs are followed.
	Northbound bool
	// Dir has the pins, StateDir the file of identities.
	Dir, StateDir string
	// Dry: nobody is told of what is served.
	Dry bool
}

// Follower is what metadata asks of ovn.Follower.
type Follower interface {
	PublishMetadata(ovn.MetadataAgent)
	MetadataNetworks() []string
	Again()
}

// Metadata lives as long as the daemon: every node with VMs has it, whatever its role.
type Metadata struct {
	cfg      Config
	taps     *taps.Taps
	sw       *ovs.Switch
	follower Follower
	inSync   func() bool // Southbound and the local database
	reg      *status.Registry
	log      *slog.Logger

	mu         sync.Mutex
	translator *translation.Translator
	complaints uint64   // the translator's, as last reported
	running    *Running // nil until it has started
	// stepped: what is wanted has been computed once. alive: the proxy is. awaitsACLs: it
	// waits for the Northbound database.
	stepped, alive, awaitsACLs bool
	began                      time.Time
	// looked: the proxy was looked at.
	looked bool
	// settling is the key of published networks on its way to what it is to be.
	settling settling

	published publishedNetworks
}

const (
	reports = "metadata"
	// aclPatience is how long after the start ACLs are waited for. From then on they are
	// unknown until the Northbound database has answered.
	aclPatience = 4 * time.Minute
)

// New makes it. It does no I/O.
func New(cfg Config, t *taps.Taps, sw *ovs.Switch, follower Follower, inSync func() bool, reg *status.Registry, log *slog.Logger) *Metadata {
	return &Metadata{
		cfg: cfg, taps: t, sw: sw, follower: follower, inSync: inSync, reg: reg, log: log, began: time.Now(),
		published: publishedNetworks{leaving: map[string]time.Time{}}, translator: translation.NewTranslator(cfg.Translator),
	}
}

// Take computes what OVN asks for after an event.
func (m *Metadata) Take(e ovn.Event) {
	if !m.cfg.Used() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stepped && !e.Dirty.VMs && !e.Dirty.All && !m.translator.Stale() {
		return
	}
	// What is wanted first is compared with what an earlier sluiced has made: a port whose
	// tap was not looked for yet, or of whose ACLs nothing is known, would be taken away, and
	// get another number.
	found := m.taps.Found()
	e.InSync = e.InSync.Remembered()
	m.awaitsACLs = !m.stepped && m.cfg.awaitsACLs(e.InSync, time.Since(m.began))
	if !m.stepped && (m.awaitsACLs || !found.Complete) {
		return
	}
	diff := m.translator.Step(e.Rows, found.Devices, e.InSync)
	if !m.translator.Stale() || !diff.Empty() {
		m.tellNeutron() // a network leaves the key before what serves it goes
		if m.running != nil {
			m.running.patch(diff, !m.stepped)
		}
		m.stepped = true
	}
	if now := m.translator.Complaints(); now != m.complaints {
		m.complaints = now
		m.reg.Reporter(reports).Replace(m.translator.Objects())
	}
}

// awaitsACLs tells whether a start has to wait for ACLs, so long after it began: for longer
// than routers wait, since nothing gives up meanwhile what was served.
func (c Config) awaitsACLs(inSync ovn.InSync, age time.Duration) bool {
	return c.SecurityGroups == config.SecurityGroupsRespect && c.Northbound && !inSync.NB && age < aclPatience
}

// Running is what is there of it; nil while there is nothing.
func (m *Metadata) Running() *Running {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.running
}

// Told tells whether it is known what is to be served, and by which taps.
func (m *Metadata) Told() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stepped || !m.cfg.Used()
}

// Ports are those of this node's VMs, and how each is served.
func (m *Metadata) Ports() []translation.PortStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.translator.Ports()
}

// Wanted is all that OVN asks for.
func (m *Metadata) Wanted() wanted.Set {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.translator.Tables()
}

// Used tells whether it is to be served.
func (m *Metadata) Used() bool { return m.cfg.Used() }
