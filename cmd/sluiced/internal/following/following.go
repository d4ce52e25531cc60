// Package following joins what follows OVN, which a daemon and a dry run both do: the translation,
// the node's role, what is done on taps, and the sessions with the databases.
package following

import (
	"context"
	"log/slog"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/role"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/taps"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/taps/balancing"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/taps/metadata"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/translation"
	"github.com/ovn-sluice/sluice/controlplane/evpn"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/controlplane/vrfindex"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// With is what a daemon and a dry run follow OVN with.
type With struct {
	Version string
	Indices translation.Indices
	// Transact, when set, takes what would be written to the local Open vSwitch database: a dry run's.
	Transact ovs.Transact
	// Memory is that of ovn.Config, Retain that of translation.Config.
	Memory string
	Retain bool
}

// Following is what follows OVN.
type Following struct {
	Config  *config.Config
	Log     *slog.Logger
	Reg     *status.Registry
	Indices *vrfindex.Store
	// Sizes are those of the Maglev tables of both planes.
	Sizes     *tables.MaglevSizes
	Steps     *translation.Translation
	Role      *role.Role
	Taps      *taps.Taps // nil: nobody needs them
	Metadata  *metadata.Metadata
	Balancing *balancing.Balancing
	Switch    *ovs.Switch
	Follower  *ovn.Follower
}

// New makes it. more are called for each event of OVN before all others.
func New(cfg *config.Config, log *slog.Logger, with With, more ...translation.Consumer) (*Following, error) {
	f := &Following{Config: cfg, Log: log, Reg: status.NewRegistry(log), Sizes: tables.NewMaglevSizes(log)}
	needs, err := f.openTranslation(with)
	if err != nil {
		return nil, err
	}
	transact := with.Transact
	if transact == nil {
		transact = func(ctx context.Context, ops ...ovsdb.Operation) ([]ovsdb.Result, error) {
			return f.Follower.Transact(ctx, ops...)
		}
	}
	f.Switch = ovs.New(ovs.Config{RunDir: cfg.OVS.RunDir, Logger: log, Transact: transact})
	publish := func(pairs map[string]string) error { return f.Follower.Publish(pairs) }
	f.Role = role.New(cfg, with.Version, f.Steps, f.Switch, publish, f.Reg, log)
	f.newFeatures(with)
	f.Steps.Consume(append(more, f.Taps, f.Metadata, f.Balancing, f.Role)...)
	f.Follower, err = ovn.NewFollower(ovn.Config{
		VSwitch: cfg.OVN.VSwitch, VSwitchHandler: f.Switch.Handle, VSwitchTables: ovs.Tables(), Southbound: cfg.OVN.SB, Northbound: cfg.OVN.NB, TLS: settings.TLSFiles(cfg.OVN.TLS),
		NorthboundPatience: settings.NorthboundPatience, NorthboundNeeded: cfg.EVPN.NATUnknown == config.NATUnknownHold, Memory: with.Memory,
		SystemID: cfg.OVN.SystemID, InactivityProbe: settings.InactivityProbe(cfg), Needs: needs, Host: f.Role.Host(), Handle: f.Steps.Take, Local: f.takeLocal, Logger: log,
	})
	return f, err
}

// openTranslation seeds the VRF indices with what the pinned maps show.
func (f *Following) openTranslation(with With) (ovn.Needs, error) {
	seed, err := ebpf.PinnedVRFs(f.Config.Dataplane.BPFFS)
	if err != nil {
		f.Log.Warn("the pinned VRF table cannot be read; indices come from the state directory alone", "error", err)
	}
	if f.Indices, err = translation.OpenIndices(with.Indices, f.Config.StateDir, seed, f.Reg); err != nil {
		return ovn.Needs{}, err
	}
	c := translation.Config{EVPN: settings.EVPN(f.Config), Exposure: settings.Exposure(f.Config), Retain: with.Retain}
	f.Steps = translation.New(c, f.Indices, f.Reg, f.Log)
	needs := c.Exposure.Needs(evpn.Needs(c.EVPN))
	if f.Config.Metadata.Used() {
		needs = settings.Metadata(f.Config.Metadata).Needs(needs)
	}
	if f.Config.LoadBalancing.OnTaps() {
		needs = settings.Clients(f.Config.LoadBalancing).Needs(needs)
	}
	if needs.VMs {
		f.Taps = taps.New(func() { f.Follower.Again() }, f.Log)
	}
	return needs, nil
}

// newFeatures makes what is done on taps.
func (f *Following) newFeatures(with With) {
	cfg := f.Config
	f.Metadata = metadata.New(metadata.Config{
		Metadata: cfg.Metadata, Translator: settings.Metadata(cfg.Metadata), Northbound: cfg.OVN.NB != "",
		Dir: owned.MetadataPins(cfg.Dataplane.BPFFS), StateDir: cfg.StateDir, Dry: with.Transact != nil,
	}, f.Taps, f.Switch, agent{f}, f.Steps.OVNInSync, f.Reg, f.Log)
	f.Balancing = balancing.New(balancing.Config{
		Used: cfg.LoadBalancing.OnTaps(), Translator: settings.Clients(cfg.LoadBalancing), Readings: f.Steps.Readings(),
		Plane: ebpf.Config{
			Dir: owned.ClientPins(cfg.Dataplane.BPFFS), Plane: ebpf.Clients, Node: ebpf.Node{FlowRate: cfg.LoadBalancing.NewSessionRate},
			Limits: settings.Limits(cfg.Dataplane.Sizes), Log: f.Log,
		},
	}, f.Taps, node{f}, f.Sizes, f.Reg, f.Log)
}

// takeLocal takes what the local database alone says, until Southbound has been read.
func (f *Following) takeLocal(rows *ovn.Rows) {
	f.Taps.LookFor(rows)
	f.Role.TakeLocal(rows)
}

// agent is the follower, which is made after metadata.
type agent struct{ f *Following }

func (a agent) PublishMetadata(m ovn.MetadataAgent) { a.f.Follower.PublishMetadata(m) }
func (a agent) MetadataNetworks() []string          { return a.f.Follower.MetadataNetworks() }
func (a agent) Again()                              { a.f.Follower.Again() }

// node is what balancing asks of the node.
type node struct{ f *Following }

func (n node) AllInSync() bool        { return n.f.Steps.AllInSync() }
func (n node) Calm() bool             { return n.f.Role.Calm() }
func (n node) ConntrackFault() string { return n.f.Switch.ConntrackFault() }
