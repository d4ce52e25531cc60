package ovs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/vswitch"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// The marks of a metadata port: Port.external_ids:sluice = "metadata", with its network.
const (
	markMetadata = "metadata"
	keyNetwork   = "sluice-network"
	// keyMTU is set where the port has the MTU that it happens to have.
	keyMTU     = "sluice-mtu"
	anyMTU     = "any"
	keyIfaceID = "iface-id"
)

// MetadataPort is the port of a network's metadata namespace on the integration bridge:
// where ovn-controller finds the network's localport. OVN's flows are all that it has.
type MetadataPort struct {
	Bridge intent.BridgeKey
	// Device is the end of the pair that is the port.
	Device string
	// IfaceID is Interface.external_ids:iface-id: the localport's logical_port.
	IfaceID string
	// AnyMTU: what is wanted says nothing of an MTU.
	AnyMTU bool
}

func (p MetadataPort) marks(network string) map[string]string {
	out := map[string]string{keyMark: markMetadata, keyNetwork: network}
	if p.AnyMTU {
		out[keyMTU] = anyMTU
	}
	return out
}

// FoundPort is a MetadataPort as it was found.
type FoundPort struct {
	MetadataPort
	// Network is that of the mark; empty: the port is not Sluice's.
	Network string
	// Number is the OpenFlow port number, 0 while there is none, and Error why.
	Number int
	Error  string
}

func (b Bridge) found(p Port) FoundPort {
	return FoundPort{
		MetadataPort{intent.BridgeKey(b.Name), p.Name, p.ifaceID, p.metadata != "" && p.anyMTU}, p.metadata, p.Number, p.Error,
	}
}

// metadataOf reads the marks of a metadata port; empty if it is none.
func metadataOf(ids map[string]string) string {
	if ids[keyMark] != markMetadata {
		return ""
	}
	return ids[keyNetwork]
}

// MetadataPorts lists Sluice's, by network.
func (s *Switch) MetadataPorts() (map[string]FoundPort, error) {
	bridges, err := s.Bridges()
	if err != nil {
		return nil, err
	}
	out := make(map[string]FoundPort)
	for _, b := range bridges {
		for _, p := range b.Ports {
			if p.metadata != "" {
				out[p.metadata] = b.found(p)
			}
		}
	}
	return out, nil
}

// FindPort finds the port of a device on any bridge, whosever it is.
func (s *Switch) FindPort(device string) (p FoundPort, there bool, err error) {
	bridges, err := s.Bridges()
	if err != nil {
		return FoundPort{}, false, err
	}
	for _, b := range bridges {
		if p, ok := b.port(device); ok {
			return b.found(p), true, nil
		}
	}
	return FoundPort{}, false, nil
}

// EnsureMetadataPorts makes ports as they are wanted, by network, in one transaction or, if
// that is refused, in one each, and waits until ovs-vswitchd has them. Those that failed
// are in failed; err is of all.
func (s *Switch) EnsureMetadataPorts(ctx context.Context, wanted map[string]MetadataPort) (failed map[string]error, err error) {
	failed = map[string]error{}
	var misplaced []string
	bridges, err := s.Bridges()
	if err != nil {
		return nil, err
	}
	for network, want := range wanted {
		for _, b := range bridges {
			if p, ok := b.find(func(p Port) bool { return p.metadata == network }); ok && (p.Name != want.Device || intent.BridgeKey(b.Name) != want.Bridge) {
				misplaced = append(misplaced, network)
			}
		}
	}
	if err := s.RemoveMetadataPorts(ctx, misplaced); err != nil {
		return nil, err
	}
	each, all := map[string][]ovsdb.Operation{}, []ovsdb.Operation(nil)
	for network, want := range wanted {
		ops, err := s.ensureMetadata(network, want, len(all))
		if err != nil {
			failed[network] = err
			continue
		}
		each[network], all = ops, append(all, ops...)
	}
	switch err := s.change(ctx, all); {
	case isRefused(err):
		// One of them would break a constraint, such as a name that a bond's Interface has.
		for network, ops := range each {
			if err := s.change(ctx, ops); err != nil {
				failed[network] = fmt.Errorf("port %s of bridge %s: %w", wanted[network].Device, wanted[network].Bridge, err)
			}
		}
	case err != nil:
		return nil, err
	}
	return failed, s.awaitMetadata(ctx, wanted, failed)
}

// change commits operations of metadata ports in one transaction.
func (s *Switch) change(ctx context.Context, ops []ovsdb.Operation) error {
	if len(ops) == 0 {
		return nil
	}
	if _, err := s.config.Transact(ctx, slices.Insert(ops, 0, ovsdb.Comment("sluice: metadata ports"))...); err != nil {
		return fmt.Errorf("metadata ports: %w", err)
	}
	return nil
}

func isRefused(err error) bool {
	_, is := errors.AsType[*ovsdb.OperationError](err)
	return is
}

// ensureMetadata are the operations of one port; n tells its rows from those of others.
func (s *Switch) ensureMetadata(network string, want MetadataPort, n int) ([]ovsdb.Operation, error) {
	b, err := s.Bridge(want.Bridge)
	if err != nil {
		return nil, err
	}
	found, there, err := s.FindPort(want.Device)
	if err != nil {
		return nil, err
	}
	ids := map[string]string{keyIfaceID: want.IfaceID}
	if !there {
		iface, port := "interface"+strconv.Itoa(n), "port"+strconv.Itoa(n)
		return []ovsdb.Operation{
			ovsdb.Insert(&vswitch.Interface{Name: want.Device, ExternalIDs: ids}, iface, "name", "external_ids"),
			ovsdb.Insert(&vswitch.Port{Name: want.Device, Interfaces: []string{iface}, ExternalIDs: want.marks(network)}, port, "name", "interfaces", "external_ids"),
			ovsdb.AddMembers(vswitch.BridgeTable, b.uuid, "ports", ovsdb.UUID(port)),
		}, nil
	}
	p, _ := b.port(want.Device)
	if found.Network != network || p.Name == "" {
		return nil, fmt.Errorf("port %s of bridge %s: %w", want.Device, found.Bridge, reconcile.ErrForeign)
	}
	var ops []ovsdb.Operation
	if p.ifaceID != want.IfaceID {
		ops = append(ops, ovsdb.SetKeys(vswitch.InterfaceTable, p.interfaceUUID, "external_ids", ids))
	}
	if p.anyMTU != want.AnyMTU {
		ops = append(ops, ovsdb.DeleteKeys(vswitch.PortTable, p.portUUID, "external_ids", keyMTU))
		if want.AnyMTU {
			ops = append(ops, ovsdb.SetKeys(vswitch.PortTable, p.portUUID, "external_ids", map[string]string{keyMTU: anyMTU}))
		}
	}
	return ops, nil
}

// awaitMetadata waits until the ports are there as wanted, and have numbers or errors.
func (s *Switch) awaitMetadata(ctx context.Context, wanted map[string]MetadataPort, failed map[string]error) error {
	var ports map[string]FoundPort
	settled := func(network string) bool {
		p := ports[network]
		return failed[network] != nil || p.MetadataPort == wanted[network] && (p.Number != 0 || p.Error != "")
	}
	waited := s.await(ctx, func() bool {
		var err error
		if ports, err = s.MetadataPorts(); err != nil {
			return false
		}
		for network := range wanted {
			if !settled(network) {
				return false
			}
		}
		return true
	})
	for network, want := range wanted {
		switch p := ports[network]; {
		case failed[network] != nil:
		case !settled(network):
			failed[network] = fmt.Errorf("port %s of bridge %s: %w", want.Device, want.Bridge, errors.Join(errIncomplete, waited))
		case p.Number == 0:
			failed[network] = fmt.Errorf("port %s of bridge %s: ovs-vswitchd: %s", want.Device, want.Bridge, p.Error)
		}
	}
	return ctx.Err()
}

// RemoveMetadataPorts takes the ports of networks away, and waits until ovs-vswitchd has
// let go of them: one of the same name that comes back before would be the old one to it.
// A port that is not there is no error, and neither is an ovs-vswitchd that does not run.
func (s *Switch) RemoveMetadataPorts(ctx context.Context, networks []string) error {
	bridges, err := s.Bridges()
	if err != nil {
		return err
	}
	ops := []ovsdb.Operation{ovsdb.Comment("sluice: metadata ports leave")}
	gone := map[string][]string{}
	for _, b := range bridges {
		for _, p := range b.Ports {
			if p.metadata != "" && slices.Contains(networks, p.metadata) {
				ops = append(ops, ovsdb.RemoveMembers(vswitch.BridgeTable, b.uuid, "ports", ovsdb.UUID(p.portUUID)))
				gone[b.Name] = append(gone[b.Name], p.Name)
			}
		}
	}
	if len(gone) == 0 {
		return nil
	}
	if _, err := s.config.Transact(ctx, ops...); err != nil {
		return fmt.Errorf("removing metadata ports: %w", err)
	}
	err = s.await(ctx, func() bool {
		left, err := s.MetadataPorts()
		return err == nil && !slices.ContainsFunc(networks, func(n string) bool { return left[n].Device != "" })
	})
	if err != nil {
		return fmt.Errorf("metadata ports have not gone: %w", err)
	}
	for bridge, names := range gone {
		if err := s.awaitNamesGone(ctx, bridge, names); err != nil {
			return err
		}
	}
	return nil
}

// awaitNamesGone is awaitGone for many ports.
func (s *Switch) awaitNamesGone(ctx context.Context, bridge string, names []string) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	for s.reachable(bridge) {
		out, err := s.ofctl(ctx, "", bridge, []string{"-O", "OpenFlow10", "show"})
		if err == nil && !slices.ContainsFunc(names, func(name string) bool { return strings.Contains(string(out), "("+name+"): addr:") }) {
			return nil
		}
		if !loop.Sleep(ctx, retryPause) {
			return fmt.Errorf("ovs-vswitchd still has ports of bridge %s that were removed: %w", bridge, errors.Join(err, ctx.Err()))
		}
	}
	return nil
}

// AdoptMetadataPort puts Sluice's mark on the port that another agent has made for a
// network's namespace. Packets go on.
func (s *Switch) AdoptMetadataPort(ctx context.Context, network, device string) error {
	bridges, err := s.Bridges()
	if err != nil {
		return err
	}
	for _, b := range bridges {
		p, ok := b.port(device)
		if !ok || p.metadata == network {
			continue
		}
		if p.metadata != "" || p.marked() {
			return fmt.Errorf("port %s of bridge %s has another mark: %w", device, b.Name, reconcile.ErrForeign)
		}
		if _, err := s.config.Transact(ctx, ovsdb.Comment("sluice: adopts port "+device+" of bridge "+b.Name),
			ovsdb.SetKeys(vswitch.PortTable, p.portUUID, "external_ids", MetadataPort{}.marks(network))); err != nil {
			return fmt.Errorf("adopting port %s of bridge %s: %w", device, b.Name, err)
		}
		return s.await(ctx, func() bool {
			ports, err := s.MetadataPorts()
			return err == nil && ports[network].Device == device
		})
	}
	return nil
}
