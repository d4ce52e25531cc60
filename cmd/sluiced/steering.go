package main

import (
	"context"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/controlplane/metadata"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/dataplane/tap"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// metadataPart steers the metadata requests of this node's machines to the proxy. It
// lives as long as the daemon: every node with machines has it, whatever its role.
type metadataPart struct {
	d      *daemon
	finder *tap.Finder
	dry    bool          // a dry run tells nobody
	looks  chan struct{} // capacity 1: taps are to be found again

	// Guarded by d.mu.
	translator *metadata.Translator
	complaints uint64               // the translator's, as last reported
	interfaces []metadata.Interface // whose devices were asked for last
	devices    map[string]metadata.Device
	at         *metadataAtWork // nil until it has started
	// stepped: what is wanted has been computed once. alive: the proxy is. awaitsACLs: it
	// waits for the Northbound database.
	stepped, alive, awaitsACLs bool
	began                      time.Time
}

const (
	metadataReports = "metadata"
	// tapPause is between two looks at the devices: those of a machine change together.
	tapPause = 5 * time.Millisecond
	// tapLook is how often they are looked at without an event, or after a failure.
	tapLook = 10 * time.Second
	// aclPatience is how long after the start ACLs are waited for. From then on they are
	// unknown until the Northbound database has answered.
	aclPatience = 4 * time.Minute
)

func newMetadata(d *daemon) *metadataPart {
	return &metadataPart{
		d: d, finder: tap.New(netns.Namespace{}), looks: make(chan struct{}, 1), began: time.Now(), translator: metadata.NewTranslator(metadataConfig(d.cfg.Metadata)),
	}
}

func metadataConfig(c config.Metadata) metadata.Config {
	out := metadata.Config{Answer: c.Answer, Respect: c.SecurityGroups == config.SecurityGroupsRespect, PublishNetworks: c.PublishNetworks == config.SwitchOn}
	switch c.Path {
	case config.MetadataEBPF:
		out.Path = metadata.PathEBPF
	case config.MetadataNamespace:
		out.Path = metadata.PathNamespace
	}
	return out
}

// take computes what OVN asks for after an event. d.mu is held.
func (m *metadataPart) take(e ovn.Event) {
	if m == nil || !m.d.cfg.Metadata.Used() || m.stepped && !e.Dirty.Metadata && !e.Dirty.All && !m.translator.Stale() {
		return
	}
	m.lookFor(e.Rows)
	// What is wanted first is compared with what an earlier sluiced has made: a port whose
	// tap was not looked for yet, or of whose ACLs nothing is known, would be taken away, and
	// get another number.
	m.awaitsACLs = !m.stepped && awaitsACLs(m.d.cfg.Metadata, e, time.Since(m.began))
	if !m.stepped && (m.awaitsACLs || !m.lookedFor(m.interfaces)) {
		return
	}
	diff := m.translator.Step(e.Rows, m.devices, e.InSync)
	if !m.translator.Stale() || !diff.Empty() {
		m.tellNeutron() // before anybody is answered
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

// awaitsACLs tells whether a start has to wait for ACLs, so long after it began.
func awaitsACLs(c config.Metadata, e ovn.Event, age time.Duration) bool {
	return c.SecurityGroups == config.SecurityGroupsRespect && e.Rows.ExpectsNB() && !e.InSync.NB && age < aclPatience
}

// takeLocal has devices looked for while OVN is still being read. d.mu is held.
func (m *metadataPart) takeLocal(rows *ovn.Rows) {
	if m != nil && m.d.cfg.Metadata.Used() {
		m.lookFor(rows)
	}
}

// lookFor has the devices of the Interfaces of ports looked for, if they are others than
// before.
func (m *metadataPart) lookFor(rows *ovn.Rows) {
	if asked := metadata.Interfaces(rows); !slices.Equal(asked, m.interfaces) {
		m.interfaces = asked
		m.look()
	}
}

// lookedFor tells whether the devices of all these Interfaces were looked for. The look
// that finds something has the follower tell its rows again.
func (m *metadataPart) lookedFor(asked []metadata.Interface) bool {
	return !slices.ContainsFunc(asked, func(i metadata.Interface) bool {
		_, looked := m.devices[i.Name]
		return !looked
	})
}

// look has the taps found again soon.
func (m *metadataPart) look() {
	select {
	case m.looks <- struct{}{}:
	default:
	}
}

// findTaps keeps the devices of the ports' Interfaces up to date. What it finds has the
// follower tell its rows again: they decide what becomes of a device.
func (m *metadataPart) findTaps(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return kernel.WatchLinks(ctx, netns.Namespace{}, func() { m.finder.Forget(); m.look() }) })
	group.Go(func() error {
		tick := time.NewTicker(tapLook)
		defer tick.Stop()
		for {
			m.find()
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(tapPause):
			}
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
				m.finder.Forget()
			case <-m.looks:
			}
		}
	})
	return group.Wait()
}

// find looks once. A look that fails leaves what was found before.
func (m *metadataPart) find() {
	m.d.mu.Lock()
	asked := m.interfaces
	m.d.mu.Unlock()
	list := make([]tap.Interface, len(asked))
	for i, one := range asked {
		list[i] = tap.Interface{Name: one.Name, Type: one.Type, Userspace: one.Userspace}
	}
	found, err := m.finder.Find(list)
	if err != nil {
		m.d.log.Warn("the taps of machines cannot be found", "error", err)
		return
	}
	devices := map[string]metadata.Device{}
	for i, one := range asked {
		f := found[i]
		devices[one.Name] = metadata.Device{Name: f.Name, IfIndex: uint32(f.IfIndex), Reason: string(f.Reason), Detail: f.Detail}
	}
	m.d.mu.Lock()
	same := maps.Equal(devices, m.devices)
	m.devices = devices
	m.d.mu.Unlock()
	if !same {
		m.d.follower.Again()
	}
}
