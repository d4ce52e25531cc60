package ovs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/vswitch"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// DefaultRunDir is where ovs-vswitchd keeps the sockets of its bridges.
const DefaultRunDir = "/var/run/openvswitch"

const defaultIntegration = "br-int"

var (
	errNotRead  = fmt.Errorf("the Open vSwitch database has not been read: %w", reconcile.ErrNotReady)
	errNoBridge = errors.New("is not in Open vSwitch")
)

// Transact commits one transaction to the Open_vSwitch database: the method of
// an ovsdb.Session.
type Transact func(ctx context.Context, operations ...ovsdb.Operation) ([]ovsdb.Result, error)

// Config of a Switch. Transact is required.
type Config struct {
	Transact Transact
	// RunDir holds BRIDGE.mgmt; empty means DefaultRunDir.
	RunDir string
	// Integration is OVN's integration bridge (Open_vSwitch.external_ids:
	// ovn-bridge); empty means br-int.
	Integration string
	// Timeout bounds one run of ovs-ofctl, and the wait for a new port's
	// number. 0 means 5 s.
	Timeout time.Duration
	// Logger may be nil.
	Logger *slog.Logger
}

// Tables are the tables and columns of the Open_vSwitch database that Handle
// needs to be told of.
func Tables() ovsdb.Tables {
	return ovsdb.Tables{
		vswitch.BridgeTable:      {"name", "datapath_type", "ports"},
		vswitch.PortTable:        {"name", "interfaces", "external_ids", "trunks", "vlan_mode"},
		vswitch.InterfaceTable:   {"name", "type", "ofport", "options", "error", "external_ids"},
		vswitch.OpenvSwitchTable: {"ovs_version"},
	}
}

// Port is an interface of a bridge; a bond has several.
type Port struct {
	Name string
	// Type is Interface.type; empty for a system device.
	Type string
	// Number is the OpenFlow port number, 0 while there is none.
	Number int
	// Peer is options:peer of a patch port.
	Peer string
	// Error is Interface.error: why the device could not be opened.
	Error string
	// Ours: it is Sluice's port of the bridge.
	Ours bool
	// VRF is the VRF and VLAN that it is Sluice's port of; the zero value for all
	// other ports.
	VRF intent.VRFPortKey

	portUUID, interfaceUUID string
	failClosed              bool
	// metadata is the network that it is Sluice's metadata port of; see MetadataPort.
	metadata, ifaceID string
	anyMTU            bool
}

// Bridge is a bridge with its ports, sorted by name.
type Bridge struct {
	Name string
	// DatapathType is "netdev" for the userspace datapath, else "system".
	DatapathType string
	Ports        []Port

	uuid  string
	ports []string // UUIDs, as in the row
}

func (b Bridge) port(name string) (Port, bool) {
	i := slices.IndexFunc(b.Ports, func(p Port) bool { return p.Name == name })
	if i < 0 {
		return Port{}, false
	}
	return b.Ports[i], true
}

func (b Bridge) ours() (Port, bool) { return b.find(func(p Port) bool { return p.Ours }) }

func (b Bridge) find(is func(Port) bool) (Port, bool) {
	i := slices.IndexFunc(b.Ports, is)
	if i < 0 {
		return Port{}, false
	}
	return b.Ports[i], true
}

func (b Bridge) equal(o Bridge) bool {
	return b.Name == o.Name && b.uuid == o.uuid && b.DatapathType == o.DatapathType &&
		slices.Equal(b.Ports, o.Ports) && slices.Equal(b.ports, o.ports)
}

// Switch is the local Open vSwitch as its database and its bridges show it.
type Switch struct {
	config  Config
	log     *slog.Logger
	changes loop.Signal
	moved   loop.Signal
	late    atomic.Int32 // runs of ovs-ofctl in a row that were not done in time

	mu          sync.Mutex
	integration string
	version     string // Open_vSwitch.ovs_version
	inSync      bool
	rows        map[string]ovsdb.Row // by UUID
	bridges     map[string]Bridge
	modified    chan struct{} // closed and replaced at each change of bridges
	leaving     leaving
}

// New does no I/O. The switch knows nothing until Handle was called.
func New(config Config) *Switch {
	if config.RunDir == "" {
		config.RunDir = DefaultRunDir
	}
	if config.Timeout <= 0 {
		config.Timeout = 5 * time.Second
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	return &Switch{
		config: config, log: config.Logger, integration: cmp.Or(config.Integration, defaultIntegration),
		changes:  loop.NewSignal(),
		moved:    loop.NewSignal(),
		rows:     make(map[string]ovsdb.Row),
		modified: make(chan struct{}),
		leaving:  leaving{},
	}
}

// SetIntegration says which bridge is OVN's from now on, as Config.Integration.
func (s *Switch) SetIntegration(bridge string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.integration = cmp.Or(bridge, defaultIntegration)
}

func (s *Switch) integrationBridge() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.integration
}

// Handle takes a batch of the session that follows Tables; batches that other
// packages ask for may hold more, which is passed over.
func (s *Switch) Handle(b ovsdb.Batch) {
	s.mu.Lock()
	for _, c := range b.Changes {
		switch c.Table {
		case vswitch.OpenvSwitchTable:
			if r, ok := c.New.(*vswitch.OpenvSwitch); ok && r.OVSVersion != nil {
				s.version = *r.OVSVersion
			}
		case vswitch.BridgeTable, vswitch.PortTable, vswitch.InterfaceTable:
			if c.New == nil {
				delete(s.rows, c.UUID)
			} else {
				s.rows[c.UUID] = c.New
			}
		}
	}
	bridges := s.assemble()
	changed := s.inSync != b.InSync || !maps.EqualFunc(bridges, s.bridges, Bridge.equal)
	// A lost connection changes nothing of what is known.
	s.bridges, s.inSync = bridges, s.inSync || b.InSync
	if changed {
		close(s.modified)
		s.modified = make(chan struct{})
	}
	s.mu.Unlock()
	if changed {
		s.changes.Send()
	}
}

func (s *Switch) assemble() map[string]Bridge {
	out := make(map[string]Bridge)
	for _, row := range s.rows {
		r, ok := row.(*vswitch.Bridge)
		if !ok {
			continue
		}
		b := Bridge{Name: r.Name, DatapathType: r.DatapathType, uuid: r.UUID, ports: r.Ports}
		if b.DatapathType == "" {
			b.DatapathType = "system"
		}
		for _, uuid := range r.Ports {
			port, ok := s.rows[uuid].(*vswitch.Port)
			if !ok {
				continue
			}
			for _, uuid := range port.Interfaces {
				if i, ok := s.rows[uuid].(*vswitch.Interface); ok {
					b.Ports = append(b.Ports, newPort(b.Name, port, i))
				}
			}
		}
		slices.SortFunc(b.Ports, func(x, y Port) int { return strings.Compare(x.Name, y.Name) })
		out[b.Name] = b
	}
	return out
}

func newPort(bridge string, p *vswitch.Port, i *vswitch.Interface) Port {
	out := Port{
		Name: i.Name, Type: i.Type, Peer: i.Options["peer"],
		Ours: p.ExternalIDs[keyMark] == markBridge, VRF: vrfOf(bridge, p.ExternalIDs), portUUID: p.UUID, interfaceUUID: i.UUID,
		metadata: metadataOf(p.ExternalIDs), ifaceID: i.ExternalIDs[keyIfaceID], anyMTU: p.ExternalIDs[keyMTU] == anyMTU,
		failClosed: slices.Equal(p.Trunks, []int{deadVLAN}) && p.VLANMode != nil && *p.VLANMode == modeTrunk,
	}
	// Interface.ofport is -1 for a port that could not be created.
	if i.Ofport != nil && *i.Ofport > 0 {
		out.Number = *i.Ofport
	}
	if i.Error != nil {
		out.Error = *i.Error
	}
	return out
}

// Bridges lists all bridges, by name. The error wraps reconcile.ErrNotReady
// while the database has not been read.
func (s *Switch) Bridges() ([]Bridge, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.inSync {
		return nil, errNotRead
	}
	return slices.SortedFunc(maps.Values(s.bridges), func(a, b Bridge) int { return strings.Compare(a.Name, b.Name) }), nil
}

// Bridge is one bridge; the error wraps reconcile.ErrMissing if there is none.
func (s *Switch) Bridge(name intent.BridgeKey) (Bridge, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.inSync {
		return Bridge{}, errNotRead
	}
	b, ok := s.bridges[string(name)]
	if !ok {
		return Bridge{}, fmt.Errorf("bridge %s %w: %w", name, errNoBridge, reconcile.ErrMissing)
	}
	return b, nil
}

// await waits until the bridges satisfy ok, at most the configured timeout.
func (s *Switch) await(ctx context.Context, ok func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	for {
		s.mu.Lock()
		modified := s.modified
		s.mu.Unlock()
		if ok() {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w for ovs-vswitchd: %w", reconcile.ErrMissing, ctx.Err())
		case <-modified:
		}
	}
}

// Changes tells that what List returned may no longer be so: list again. It is
// never closed; several changes may be one message.
func (s *Switch) Changes() <-chan struct{} { return s.changes }
