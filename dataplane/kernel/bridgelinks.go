package kernel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

const (
	markHost = "sluice:bridge:"
	markPort = "sluice:bridge-port:"
	// maxBridgeName keeps a mark within ALTIFNAMSIZ, 128 with its final zero.
	// Open vSwitch gives a bridge a device of its name, so none is this long.
	maxBridgeName = 127 - len(markPort)
	// maxPairs bounds the search for a free number.
	maxPairs = 4096
)

// Ports is what the driver needs of Open vSwitch; *ovs.Switch has it.
type Ports interface {
	// Datapath is "netdev" or "system".
	Datapath(bridge intent.BridgeKey) (string, error)
	// OurPorts lists Sluice's port of each bridge that has one.
	OurPorts() (map[intent.BridgeKey]string, error)
	// HasPort tells whether and where any port has the name.
	HasPort(name string) (intent.BridgeKey, bool)
	// EnsurePort makes the device Sluice's port, with its default flow.
	EnsurePort(ctx context.Context, bridge intent.BridgeKey, device string) error
	// CheckPort is nil if EnsurePort would change nothing.
	CheckPort(ctx context.Context, bridge intent.BridgeKey, device string) error
	// RemovePort undoes EnsurePort.
	RemovePort(ctx context.Context, bridge intent.BridgeKey) error
}

// BridgeLinksConfig is what BridgeLinks is told. Ports and Attach are required.
type BridgeLinksConfig struct {
	Namespace netns.Namespace
	Ports     Ports
	// Attach is called with sluice<N>.
	Attach Attach
	// Attached, when set, tells whether what Attach did is still so.
	Attached func(ifindex int) (bool, error)
	// MTU of both ends in bytes; 0 leaves 1500.
	MTU int
	// Routed: the program of sluice<N> asks for the host's routes, which the kernel
	// tells only of devices that forward.
	Routed bool
}

// BridgeLinks is the driver of intent.Bridge: veth pairs between the data plane
// and provider bridges.
type BridgeLinks struct {
	config BridgeLinksConfig

	mu    sync.Mutex
	index map[intent.BridgeKey]int
	names map[int]string
	// attached are the devices that Attach succeeded for.
	attached map[int]bool
}

var _ reconcile.Driver[intent.BridgeKey, intent.Bridge] = (*BridgeLinks)(nil)

// NewBridgeLinks does no I/O.
func NewBridgeLinks(config BridgeLinksConfig) *BridgeLinks {
	if config.MTU == 0 {
		config.MTU = 1500
	}
	return &BridgeLinks{config: config, index: make(map[intent.BridgeKey]int), names: make(map[int]string), attached: make(map[int]bool)}
}

// IfIndex is the ifindex of sluice<N> of a bridge, as last listed or applied.
func (d *BridgeLinks) IfIndex(bridge intent.BridgeKey) (int, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i, ok := d.index[bridge]
	return i, ok
}

// Name is the name of sluice<N> by its ifindex, as last listed or applied.
func (d *BridgeLinks) Name(ifindex int) (string, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, ok := d.names[ifindex]
	return n, ok
}

// Names are those of all sluice<N>, as last listed or applied.
func (d *BridgeLinks) Names() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Values(d.names))
}

func (d *BridgeLinks) remember(bridge intent.BridgeKey, l netlink.Link) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if old, ok := d.index[bridge]; ok {
		delete(d.names, old)
		delete(d.index, bridge)
	}
	if l != nil {
		d.index[bridge], d.names[l.Attrs().Index] = l.Attrs().Index, l.Attrs().Name
	}
}

func (d *BridgeLinks) isAttached(l netlink.Link) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.attached[l.Attrs().Index]
}

// pair is the two ends of a bridge's veth pair; an end may be missing.
type pair struct{ host, port netlink.Link }

func (p pair) complete() bool { return p.host != nil && p.port != nil }

// pairs finds ours by their marks.
func pairs(h *netlink.Handle) (map[intent.BridgeKey]pair, error) {
	links, err := link.Dump(h.LinkList)
	if err != nil {
		return nil, fmt.Errorf("listing links: %w", err)
	}
	out := make(map[intent.BridgeKey]pair)
	for _, l := range links {
		for _, name := range l.Attrs().AltNames {
			if b, ok := strings.CutPrefix(name, markHost); ok {
				p := out[intent.BridgeKey(b)]
				p.host = l
				out[intent.BridgeKey(b)] = p
			} else if b, ok := strings.CutPrefix(name, markPort); ok {
				p := out[intent.BridgeKey(b)]
				p.port = l
				out[intent.BridgeKey(b)] = p
			}
		}
	}
	return out, nil
}

// List has a bridge with the zero value if anything of its pair, port, default
// flow or sysctls is not as Apply leaves it.
func (d *BridgeLinks) List(ctx context.Context) (map[intent.BridgeKey]intent.Bridge, error) {
	ports, err := d.config.Ports.OurPorts()
	if err != nil {
		return nil, err
	}
	out := make(map[intent.BridgeKey]intent.Bridge)
	for b := range ports {
		out[b] = intent.Bridge{}
	}
	err = d.config.Namespace.Netlink(func(h *netlink.Handle) error {
		found, err := pairs(h)
		if err != nil {
			return err
		}
		for b, p := range found {
			d.remember(b, p.host)
			whole, err := d.intact(ctx, b, p)
			if err != nil {
				return fmt.Errorf("bridge %s: %w", b, err)
			}
			out[b] = intent.Bridge{}
			if whole {
				out[b] = intent.Bridge{Name: b}
			}
		}
		return nil
	})
	return out, err
}

// Apply makes pairs; the order within one is: marks, MTU, sysctls, programs, port and
// default flow, up.
func (d *BridgeLinks) Apply(ctx context.Context, rows []reconcile.Row[intent.BridgeKey, intent.Bridge]) []error {
	errs := make([]error, len(rows))
	for i, r := range rows {
		if err := d.config.Namespace.Netlink(func(h *netlink.Handle) error { return d.apply(ctx, h, r.Key) }); err != nil {
			errs[i] = fmt.Errorf("veth pair of bridge %s: %w", r.Key, err)
		}
	}
	return reconcile.Results(errs)
}

func (d *BridgeLinks) apply(ctx context.Context, h *netlink.Handle, b intent.BridgeKey) error {
	if len(b) == 0 || len(b) > maxBridgeName {
		return errors.New("no bridge has a name of this length")
	}
	datapath, err := d.config.Ports.Datapath(b)
	if err != nil {
		return err
	}
	found, err := pairs(h)
	if err != nil {
		return err
	}
	p := found[b]
	if !p.complete() {
		if err := d.forget(ctx, b); err != nil {
			return err
		}
		if p, err = d.create(h, b, p); err != nil {
			return err
		}
	}
	for _, l := range []netlink.Link{p.host, p.port} {
		knobs := closed
		if l == p.host {
			knobs = d.knobs()
		}
		// First: an MTU too small for IPv6 takes its sysctls away.
		if err := h.LinkSetMTU(l, d.config.MTU); err != nil {
			return fmt.Errorf("setting MTU %d of %s: %w", d.config.MTU, l.Attrs().Name, err)
		}
		if err := settle(h, l, knobs); err != nil {
			return err
		}
	}
	name := p.host.Attrs().Name
	if datapath == "netdev" {
		if err := offloadsOff(name); err != nil {
			return err
		}
	}
	// A frame that came up before the programs would reach the host; one that
	// left before the default flow would be switched like any other.
	if err := d.config.Attach(ctx, name, p.host.Attrs().Index); err != nil {
		return fmt.Errorf("attaching programs to %s: %w", name, err)
	}
	d.mu.Lock()
	d.attached[p.host.Attrs().Index] = true
	d.mu.Unlock()
	if err := d.config.Ports.EnsurePort(ctx, b, p.port.Attrs().Name); err != nil {
		return err
	}
	for _, l := range []netlink.Link{p.port, p.host} {
		if err := h.LinkSetUp(l); err != nil {
			return fmt.Errorf("setting %s up: %w", l.Attrs().Name, err)
		}
	}
	d.remember(b, p.host)
	return nil
}

// knobs are the sysctls of sluice<N>. Also one that forwards hands nothing to the
// host: its program, and the second line behind it, let nothing pass.
func (d *BridgeLinks) knobs() []knob {
	if d.config.Routed {
		return with(closed, knob{"ipv6", "forwarding", "1"}, knob{"ipv4", "forwarding", "1"})
	}
	return closed
}

// forget takes a port out of the bridge whose device has gone: ovs-vswitchd would
// go on with the device that it opened, and never open the new one of that name.
func (d *BridgeLinks) forget(ctx context.Context, b intent.BridgeKey) error {
	ports, err := d.config.Ports.OurPorts()
	if err != nil {
		return err
	}
	if _, there := ports[b]; !there {
		return nil
	}
	return d.config.Ports.RemovePort(ctx, b)
}

// create makes the pair with the lowest free number. Half a pair of ours is what
// a crash left: it goes first.
func (d *BridgeLinks) create(h *netlink.Handle, b intent.BridgeKey, half pair) (pair, error) {
	for _, l := range []netlink.Link{half.host, half.port} {
		if l != nil {
			if err := h.LinkDel(l); err != nil {
				return pair{}, fmt.Errorf("removing half a pair, %s: %w", l.Attrs().Name, err)
			}
		}
	}
	n, err := d.free(h, b)
	if err != nil {
		return pair{}, err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr = hostName(n), hardware(hostMAC(n))
	v := &netlink.Veth{LinkAttrs: attrs, PeerName: portName(n), PeerHardwareAddr: hardware(portMAC(n))}
	if err := h.LinkAdd(v); err != nil {
		return pair{}, fmt.Errorf("creating %s: %w", attrs.Name, err)
	}
	var p pair
	if p.host, err = find(h, hostName(n)); err != nil {
		return pair{}, err
	}
	if p.port, err = find(h, portName(n)); err != nil {
		return pair{}, err
	}
	if !p.complete() {
		return pair{}, fmt.Errorf("%s has gone since it was created", attrs.Name)
	}
	if err := h.LinkAddAltName(p.host, markHost+string(b)); err != nil {
		return pair{}, fmt.Errorf("marking %s: %w", attrs.Name, err)
	}
	if err := h.LinkAddAltName(p.port, markPort+string(b)); err != nil {
		return pair{}, fmt.Errorf("marking %s: %w", portName(n), err)
	}
	return p, nil
}

// Delete takes the port out of the bridge before the pair goes.
func (d *BridgeLinks) Delete(ctx context.Context, keys []intent.BridgeKey) []error {
	errs := make([]error, len(keys))
	for i, b := range keys {
		if err := d.delete(ctx, b); err != nil {
			errs[i] = fmt.Errorf("removing the veth pair of bridge %s: %w", b, err)
		}
	}
	return reconcile.Results(errs)
}

func (d *BridgeLinks) delete(ctx context.Context, b intent.BridgeKey) error {
	if err := d.config.Ports.RemovePort(ctx, b); err != nil {
		return err
	}
	return d.config.Namespace.Netlink(func(h *netlink.Handle) error {
		found, err := pairs(h)
		if err != nil {
			return err
		}
		p := found[b]
		if p.complete() {
			p.port = nil // goes with the other end
		}
		for _, l := range []netlink.Link{p.host, p.port} {
			if l != nil {
				if err := h.LinkDel(l); err != nil {
					return fmt.Errorf("removing %s: %w", l.Attrs().Name, err)
				}
			}
		}
		d.remember(b, nil)
		return nil
	})
}

// Bridges lists the bridges that have a pair, as last listed or applied.
func (d *BridgeLinks) Bridges() []intent.BridgeKey {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.index))
}
