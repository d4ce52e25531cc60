package namespace

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// The ends of the proxy's pair: the one on the node, and the one with the proxy.
const (
	ProxyHost   = "sluice-md0"
	ProxyInside = "sluice-md1"
)

// proxyMTU is above that of any VM: the pair never is the narrow place.
const proxyMTU = 65535

// What steered requests come to, and from.
var (
	// Address4 and Address6 are where the proxy listens in its namespace.
	Address4 = netip.MustParseAddr("169.254.169.254")
	Address6 = netip.MustParseAddr("fd6e::a9fe:a9fe")

	hostMAC   = intent.MAC{0xfe, 0x73, 0x6c, 0x75, 0xa9, 0xfe}
	insideMAC = intent.MAC{0xfe, 0x73, 0x6d, 0x75, 0xa9, 0xfe}

	// ways are where the addresses of package identity are: beyond a neighbour that is
	// the outer end, so that no guest has one of its own.
	ways = []way{
		{netip.MustParsePrefix("100.64.0.0/10"), netip.MustParseAddr("169.254.169.1")},
		{netip.MustParsePrefix("fd6d::/32"), netip.MustParseAddr("fe80::1")},
	}
)

type way struct {
	to  netip.Prefix
	hop netip.Addr
}

// ProxyConfig is what a Proxy is told.
type ProxyConfig struct {
	// Node is where the outer end is.
	Node  netns.Namespace
	Names Names
	// Attach puts the program on the outer end, which is not up yet. It is called again
	// for one that is in use, and then has to leave packets running. The calling thread is
	// in the node's namespace.
	Attach func(ctx context.Context, p taps.Proxy) error
}

// Proxy makes and removes the proxy's namespace.
type Proxy struct{ config ProxyConfig }

// NewProxy does no I/O.
func NewProxy(config ProxyConfig) *Proxy {
	return &Proxy{config}
}

// pair is in the namespace by the name that it has, or is to have.
func (p *Proxy) pair() pair {
	return pair{space{p.config.Names.ProxyPath(), mark}, ProxyHost, ProxyInside, hostMAC, insideMAC}
}

// Namespace is where the proxy listens.
func (p *Proxy) Namespace() netns.Namespace { return p.pair().space.namespace() }

func (p *Proxy) inner() inner {
	return inner{
		name: ProxyInside, mac: insideMAC, mtu: proxyMTU,
		addresses: usable(netip.PrefixFrom(Address4, 32), netip.PrefixFrom(Address6, 128)),
	}
}

// Ensure makes the namespace and its pair, or corrects what is there. After an error a
// new outer end is left down.
func (p *Proxy) Ensure(ctx context.Context) (out taps.Proxy, err error) {
	err = p.config.Node.Netlink(func(h *netlink.Handle) error {
		out, err = p.ensure(ctx, h)
		return err
	})
	if err != nil {
		return taps.Proxy{}, fmt.Errorf("namespace of the metadata proxy: %w", err)
	}
	return out, nil
}

func (p *Proxy) ensure(ctx context.Context, h *netlink.Handle) (taps.Proxy, error) {
	if err := p.pair().space.ensure(); err != nil {
		return taps.Proxy{}, err
	}
	outer, err := p.pair().ensure(h, func() error { return nil })
	if err != nil {
		return taps.Proxy{}, err
	}
	if err := settleOuter(h, outer, proxyMTU); err != nil {
		return taps.Proxy{}, err
	}
	if string(outer.Attrs().HardwareAddr) != string(hostMAC[:]) {
		if err := h.LinkSetHardwareAddr(outer, hardware(hostMAC)); err != nil {
			return taps.Proxy{}, fmt.Errorf("setting the address of %s: %w", ProxyHost, err)
		}
	}
	if err := p.Namespace().Netlink(p.settleInside); err != nil {
		return taps.Proxy{}, err
	}
	out := taps.Proxy{Host: uint32(outer.Attrs().Index), HostMAC: hostMAC, Inside: insideMAC}
	// A packet that came out before the program would be the node's.
	if p.config.Attach != nil {
		if err := p.config.Attach(ctx, out); err != nil {
			return taps.Proxy{}, fmt.Errorf("attaching the program to %s: %w", ProxyHost, err)
		}
	}
	if !up(outer) {
		if err := h.LinkSetUp(outer); err != nil {
			return taps.Proxy{}, fmt.Errorf("setting %s up: %w", ProxyHost, err)
		}
	}
	return out, nil
}

func (p *Proxy) settleInside(h *netlink.Handle) error {
	if err := p.inner().settle(h); err != nil {
		return err
	}
	l, err := h.LinkByName(ProxyInside)
	if err != nil {
		return fmt.Errorf("reading link %s: %w", ProxyInside, err)
	}
	missing, err := waysMissing(h, l)
	if err != nil {
		return err
	}
	for _, w := range missing {
		if err := w.make(h, l); err != nil {
			return fmt.Errorf("way to %s: %w", w.to, err)
		}
	}
	return nil
}

func (w way) neighbour(l netlink.Link) *netlink.Neigh {
	return permanent(l, intent.PortAddress{MAC: hostMAC, Addr: w.hop})
}

func (w way) make(h *netlink.Handle, l netlink.Link) error {
	to := &net.IPNet{IP: w.to.Addr().AsSlice(), Mask: net.CIDRMask(w.to.Bits(), w.to.Addr().BitLen())}
	return errors.Join(
		h.NeighSet(w.neighbour(l)),
		h.RouteReplace(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: to, Gw: w.hop.AsSlice(), Flags: int(netlink.FLAG_ONLINK), Protocol: kernel.RouteProtocol}))
}

// waysMissing are those without their route or neighbour.
func waysMissing(h *netlink.Handle, l netlink.Link) (out []way, err error) {
	routes, err := link.Dump(func() ([]netlink.Route, error) { return h.RouteList(l, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("listing routes: %w", err)
	}
	neighbours, err := link.Dump(func() ([]netlink.Neigh, error) { return h.NeighList(l.Attrs().Index, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("listing neighbours: %w", err)
	}
	for _, w := range ways {
		if len(usable(w.to)) == 0 {
			continue
		}
		routed := slices.ContainsFunc(routes, func(r netlink.Route) bool {
			return r.Dst != nil && r.Dst.String() == w.to.String() && r.Gw.Equal(w.hop.AsSlice()) && r.Type == unix.RTN_UNICAST
		})
		known := slices.ContainsFunc(neighbours, func(n netlink.Neigh) bool {
			return n.IP.Equal(w.hop.AsSlice()) && n.State&netlink.NUD_PERMANENT != 0 && string(n.HardwareAddr) == string(hostMAC[:])
		})
		if !routed || !known {
			out = append(out, w)
		}
	}
	return out, nil
}

// Check says what Ensure would change, but for the program.
func (p *Proxy) Check() (out []string, err error) {
	there, ours, err := p.pair().space.ours()
	if err != nil || !there {
		return []string{p.pair().space.String() + " is missing"}, err
	}
	if !ours {
		return []string{p.pair().space.String() + " is not Sluice's"}, nil
	}
	err = p.config.Node.Netlink(func(h *netlink.Handle) error {
		outer, err := kernel.Find(h, ProxyHost)
		switch {
		case err != nil:
			return err
		case outer == nil:
			out = append(out, ProxyHost+" is missing")
			return nil
		case !p.pair().marked(outer):
			out = append(out, ProxyHost+" is not Sluice's")
			return nil
		}
		if joined, err := p.pair().joined(h, outer); err != nil || !joined {
			out = append(out, ProxyHost+" does not lead to the proxy")
			return err
		}
		if !up(outer) {
			out = append(out, ProxyHost+" is down")
		}
		if a := outer.Attrs(); a.MTU != proxyMTU || string(a.HardwareAddr) != string(hostMAC[:]) {
			out = append(out, fmt.Sprintf("%s has the MTU %d and the address %s", ProxyHost, a.MTU, a.HardwareAddr))
		}
		out = append(out, kernel.Open(outer)...)
		return p.Namespace().Netlink(func(h *netlink.Handle) error {
			more, err := p.checkInside(h)
			out = append(out, more...)
			return err
		})
	})
	return out, err
}

func (p *Proxy) checkInside(h *netlink.Handle) ([]string, error) {
	f, err := look(h, ProxyInside)
	if err != nil {
		return nil, err
	}
	out := p.inner().differences(f)
	if f == nil {
		return out, nil
	}
	missing, err := waysMissing(h, f.link)
	for _, w := range missing {
		out = append(out, "there is no way to "+w.to.String())
	}
	return out, err
}

// Exists tells whether anything of it is there and Sluice's.
func (p *Proxy) Exists() (bool, error) {
	_, ours, err := p.pair().space.ours()
	if err != nil || ours {
		return ours, err
	}
	err = p.config.Node.Netlink(func(h *netlink.Handle) error {
		l, err := kernel.Find(h, ProxyHost)
		ours = err == nil && l != nil && (p.pair().marked(l) || p.pair().unfinished(l))
		return err
	})
	return ours, err
}

// Remove takes the pair away, and the namespace: by each of its names, since a build that knows the first
// one alone may have made another.
func (p *Proxy) Remove() error {
	errs := []error{p.config.Node.Netlink(p.pair().remove), p.pair().space.remove()}
	for i := range proxyNames {
		other := space{p.config.Names.proxyPath(i + 1), mark}
		if _, ours, err := other.ours(); err == nil && ours {
			errs = append(errs, other.remove())
		}
	}
	return errors.Join(errs...)
}
