package main

import (
	"time"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/controlplane/metadata"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/config"
)

// metadataPart steers the metadata requests of this node's machines to the proxy. It
// lives as long as the daemon: every node with machines has it, whatever its role.
type metadataPart struct {
	d   *daemon
	dry bool // a dry run tells nobody

	// Guarded by d.mu.
	translator *metadata.Translator
	complaints uint64          // the translator's, as last reported
	at         *metadataAtWork // nil until it has started
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
	metadataReports = "metadata"
	// aclPatience is how long after the start ACLs are waited for. From then on they are
	// unknown until the Northbound database has answered.
	aclPatience = 4 * time.Minute
)

func newMetadata(d *daemon) *metadataPart {
	return &metadataPart{d: d, began: time.Now(), published: publishedNetworks{leaving: map[string]time.Time{}}, translator: metadata.NewTranslator(settings.Metadata(d.cfg.Metadata))}
}

// take computes what OVN asks for after an event. d.mu is held.
func (m *metadataPart) take(e ovn.Event) {
	if m == nil || !m.d.cfg.Metadata.Used() || m.stepped && !e.Dirty.Machines && !e.Dirty.All && !m.translator.Stale() {
		return
	}
	// What is wanted first is compared with what an earlier sluiced has made: a port whose
	// tap was not looked for yet, or of whose ACLs nothing is known, would be taken away, and
	// get another number.
	e.InSync = e.InSync.Remembered()
	m.awaitsACLs = !m.stepped && awaitsACLs(m.d.cfg, e.InSync, time.Since(m.began))
	if !m.stepped && (m.awaitsACLs || !m.d.taps.lookedFor()) {
		return
	}
	diff := m.translator.Step(e.Rows, m.d.taps.devices, e.InSync)
	if !m.translator.Stale() || !diff.Empty() {
		m.tellNeutron() // a network leaves the key before what serves it goes
		if m.at != nil {
			m.at.patch(diff, !m.stepped)
		}
		m.stepped = true
	}
	if now := m.translator.Complaints(); now != m.complaints {
		m.complaints = now
		m.d.reg.Reporter(metadataReports).Replace(m.translator.Objects())
	}
}

// awaitsACLs tells whether a start has to wait for ACLs, so long after it began: for longer
// than routers wait, since nothing gives up meanwhile what was served.
func awaitsACLs(c *config.Config, inSync ovn.InSync, age time.Duration) bool {
	return c.Metadata.SecurityGroups == config.SecurityGroupsRespect && c.OVN.NB != "" && !inSync.NB && age < aclPatience
}
