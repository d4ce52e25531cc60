package namespace

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// LinkLocal6 is where guests ask by IPv6, of the device that they ask on
// (neutron_lib.constants.METADATA_V6_IP).
var LinkLocal6 = netip.MustParseAddr("fe80::a9fe:a9fe")

// Ports is what the driver needs of Open vSwitch; *ovs.Switch has it.
type Ports interface {
	MetadataPorts() (map[string]ovs.FoundPort, error)
	FindPort(device string) (p ovs.FoundPort, there bool, err error)
	EnsureMetadataPorts(ctx context.Context, wanted map[string]ovs.MetadataPort) (failed map[string]error, err error)
	RemoveMetadataPorts(ctx context.Context, networks []string) error
	AdoptMetadataPort(ctx context.Context, network, device string) error
}

// NetworksConfig is what Networks is told. Ports is required.
type NetworksConfig struct {
	// Node is where the outer ends are: the namespace of Open vSwitch.
	Node  netns.Namespace
	Names Names
	Ports Ports
}

// Networks is the driver of intent.MetadataNetwork.
type Networks struct{ config NetworksConfig }

var _ reconcile.Driver[string, intent.MetadataNetwork] = (*Networks)(nil)

// NewNetworks does no I/O.
func NewNetworks(config NetworksConfig) *Networks { return &Networks{config} }

func (d *Networks) space(network string) space {
	return space{d.config.Names.Path(network), markOf(network)}
}

func (d *Networks) pair(network string, mac intent.MAC) pair {
	outside, inside := Devices(network)
	return pair{d.space(network), outside, inside, address(network), mac}
}

// innerOf is the inner end of a network.
func innerOf(v intent.MetadataNetwork) inner {
	_, inside := Devices(v.Network)
	addresses := append(v.Addresses.All(), netip.PrefixFrom(Address4, 32))
	if v.IPv6 {
		addresses = append(addresses, netip.PrefixFrom(LinkLocal6, 128), own6(v.MAC))
	}
	return inner{name: inside, mac: v.MAC, mtu: int(v.MTU), arp: true, filled: v.Userspace, addresses: usable(addresses...)}
}

// own6 is the link-local address of a device, and the network that it is in.
func own6(m intent.MAC) netip.Prefix { return netip.PrefixFrom(m.LinkLocal(), 64) }

func portOf(v intent.MetadataNetwork) ovs.MetadataPort {
	outside, _ := Devices(v.Network)
	return ovs.MetadataPort{Bridge: intent.BridgeKey(v.Bridge), Device: outside, IfaceID: v.Port, AnyMTU: v.MTU == 0}
}

var errIncomplete = errors.New("names no port, MAC address or bridge")

func check(v intent.MetadataNetwork) error {
	if err := nameable(v.Network); err != nil {
		return err
	}
	if v.Port == "" || v.MAC.IsZero() || v.Bridge == "" {
		return fmt.Errorf("network %s %w", v.Network, errIncomplete)
	}
	return nil
}

// Apply makes namespaces with their pairs, then all ports in one transaction, and sets
// the outer ends up last.
func (d *Networks) Apply(ctx context.Context, rows []reconcile.Row[string, intent.MetadataNetwork]) []error {
	errs := make([]error, len(rows))
	ports := map[string]ovs.MetadataPort{}
	outers := make([]netlink.Link, len(rows))
	for i, r := range rows {
		if errs[i] = ctx.Err(); errs[i] != nil {
			continue
		}
		if outers[i], errs[i] = d.prepare(ctx, r.Value); errs[i] == nil {
			ports[r.Key] = portOf(r.Value)
		}
	}
	var failed map[string]error
	var all error
	if len(ports) > 0 {
		failed, all = d.config.Ports.EnsureMetadataPorts(ctx, ports)
	}
	for i, r := range rows {
		if _, made := ports[r.Key]; made {
			errs[i] = errors.Join(failed[r.Key], all)
		}
		if errs[i] == nil && !up(outers[i]) {
			errs[i] = d.config.Node.Netlink(func(h *netlink.Handle) error { return h.LinkSetUp(outers[i]) })
		}
		if errs[i] != nil {
			errs[i] = fmt.Errorf("metadata namespace of network %s: %w", r.Key, errs[i])
		}
	}
	return reconcile.Results(errs)
}

// prepare makes all but the port, and returns the outer end.
func (d *Networks) prepare(ctx context.Context, v intent.MetadataNetwork) (outer netlink.Link, err error) {
	if err := check(v); err != nil {
		return nil, err
	}
	p := d.pair(v.Network, v.MAC)
	if err := p.space.ensure(); err != nil {
		return nil, err
	}
	err = d.config.Node.Netlink(func(h *netlink.Handle) (err error) {
		// ovs-vswitchd would go on with a device that it opened and that has gone, and never
		// open the new one of that name.
		outer, err = p.ensure(h, func() error { return d.config.Ports.RemoveMetadataPorts(ctx, []string{v.Network}) })
		if err != nil {
			return err
		}
		return settleOuter(h, outer, int(v.MTU))
	})
	if err != nil {
		return nil, err
	}
	return outer, p.space.namespace().Netlink(func(h *netlink.Handle) error {
		if err := innerOf(v).settle(h); err != nil {
			return err
		}
		// Last, since the kernel forgets neighbours when a device goes down or gets another
		// address.
		return settleNeighbours(h, p.inside, v.Neighbours)
	})
}

// removals is how many pairs go at a time: most of what the kernel takes for one is
// waiting until no processor uses it any more.
const removals = 16

// Delete takes the ports out first, all at once.
func (d *Networks) Delete(ctx context.Context, networks []string) []error {
	errs := make([]error, len(networks))
	all := d.config.Ports.RemoveMetadataPorts(ctx, networks)
	var group errgroup.Group
	group.SetLimit(removals)
	for i, network := range networks {
		group.Go(func() error {
			if errs[i] = all; all == nil {
				errs[i] = d.remove(network)
			}
			if errs[i] != nil {
				errs[i] = fmt.Errorf("removing the metadata namespace of network %s: %w", network, errs[i])
			}
			return nil
		})
	}
	_ = group.Wait() // errs has them
	return reconcile.Results(errs)
}

// remove takes away what is Sluice's of a network. What is not is nobody's business.
func (d *Networks) remove(network string) error {
	p := d.pair(network, intent.MAC{})
	err := d.config.Node.Netlink(p.remove)
	return errors.Join(mine(err), mine(p.space.remove()))
}

func mine(err error) error {
	if errors.Is(err, reconcile.ErrForeign) {
		return nil
	}
	return err
}

// List has a network with the zero value if anything of it cannot be said by a value.
func (d *Networks) List(ctx context.Context) (map[string]intent.MetadataNetwork, error) {
	ports, err := d.config.Ports.MetadataPorts()
	if err != nil {
		return nil, err
	}
	all, err := d.see(ctx)
	if err != nil {
		return nil, err
	}
	for network := range ports {
		if all[network] == nil {
			all[network] = &seen{}
		}
	}
	out := make(map[string]intent.MetadataNetwork, len(all))
	err = d.config.Node.Do(func() error {
		for network, s := range all {
			out[network] = s.value(network, ports[network])
		}
		return nil
	})
	return out, err
}

// value is a network as it is; the zero value if it is not one that Apply makes. The
// thread is in the node's namespace.
func (s *seen) value(network string, port ovs.FoundPort) intent.MetadataNetwork {
	outside, _ := Devices(network)
	switch {
	case s.outer == nil || s.inner == nil || !s.joined || s.outer.Attrs().Name != outside:
		return intent.MetadataNetwork{}
	case !up(s.outer) || len(kernel.Open(s.outer)) > 0:
		return intent.MetadataNetwork{}
	case port.Device != outside || port.Number == 0 || port.Error != "":
		return intent.MetadataNetwork{}
	}
	v := valueOf(network, port, s.inner)
	v.Neighbours = s.neighbours
	if v.MTU != 0 && s.outer.Attrs().MTU != int(v.MTU) || len(innerOf(v).differences(s.inner)) > 0 {
		return intent.MetadataNetwork{}
	}
	return v
}

// valueOf is what Apply may have been given to make this.
func valueOf(network string, port ovs.FoundPort, f *found) intent.MetadataNetwork {
	v := intent.MetadataNetwork{
		Network: network, Port: port.IfaceID, Bridge: string(port.Bridge), Userspace: !f.offloaded,
		IPv6: slices.Contains(f.addresses, netip.PrefixFrom(LinkLocal6, 128)),
	}
	copy(v.MAC[:], f.link.Attrs().HardwareAddr)
	if !port.AnyMTU {
		v.MTU = uint16(f.link.Attrs().MTU)
	}
	own := slices.DeleteFunc(slices.Clone(f.addresses), func(p netip.Prefix) bool {
		return p == netip.PrefixFrom(Address4, 32) || v.IPv6 && (p == netip.PrefixFrom(LinkLocal6, 128) || p == own6(v.MAC))
	})
	v.Addresses = intent.NewPrefixSet(own...)
	return v
}
