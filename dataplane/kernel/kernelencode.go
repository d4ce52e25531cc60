package kernel

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// The bytes that VXLAN adds to an inner IP packet: outer IP, UDP, VXLAN and the
// inner Ethernet header (RFC 7348 section 5).
const (
	overhead4 = 20 + 8 + 8 + 14
	overhead6 = 40 + 8 + 8 + 14
)

// reach is what remote routes lead through: a MAC on sluice-vxlan, VNI 0, or on a
// VRF's own bridge and behind its VXLAN device.
type reach struct {
	vni intent.VNI
	mac intent.MAC
	v6  bool
}

// need is a neighbour that a route leads through, and where its frames go.
type need struct {
	at   neighbour
	mac  intent.MAC
	vni  intent.VNI // of the VXLAN device; 0: sluice-vxlan
	vtep netip.Addr
}

// encoder makes routes of rows, and rows of routes.
type encoder struct {
	p        *Path
	s        *snapshot
	f        *fib
	node     PathNode
	gateways map[intent.GatewayKey]gatewayAt
	pairs    map[int]intent.VRFPortKey // by the ifindex of the VRF's end
}

type gatewayAt struct {
	end netlink.Link
	row intent.KernelGateway
}

func (p *Path) newEncoder(s *snapshot, f *fib) *encoder {
	e := &encoder{p: p, s: s, f: f, node: p.constants(), gateways: map[intent.GatewayKey]gatewayAt{}, pairs: map[int]intent.VRFPortKey{}}
	for k, pair := range s.allEnds() {
		if pair.vrf == nil {
			continue
		}
		e.pairs[pair.vrf.Attrs().Index] = k
		found, whole := gatewaysOn(k, pair.vrf)
		for mac, g := range found {
			if whole[mac] {
				e.gateways[g.Key] = gatewayAt{pair.vrf, g}
			}
		}
	}
	return e
}

// encode is the route of a row, and what it leads through.
func (e *encoder) encode(key intent.RouteKey, route intent.Route) (fibRoute, []need, error) {
	vrf, ok := e.s.vrf(key.VNI)
	if !ok {
		return fibRoute{}, nil, fmt.Errorf("vrf-%d: %w", key.VNI, reconcile.ErrNotReady)
	}
	switch route.Kind {
	case intent.RouteBlock:
		return fibRoute{table: vrf.Table, prefix: key.Prefix, kind: unix.RTN_BLACKHOLE, protocol: RouteProtocol, metric: RouteMetric}, nil, nil
	case intent.RouteLocal:
		g, ok := e.gateways[route.Gateway]
		if !ok || g.row.VNI != key.VNI {
			return fibRoute{}, nil, fmt.Errorf("gateway %s: %w", route.Gateway, reconcile.ErrNotReady)
		}
		r, err := e.f.localRouteTo(vrf.Table, key.Prefix, g.end, g.row)
		return r, nil, err
	case intent.RouteRemote:
		return e.remote(vrf, key, route.NextHops)
	}
	return fibRoute{}, nil, fmt.Errorf("kind %s has no route", route.Kind)
}

func (e *encoder) remote(vrf *netlink.Vrf, key intent.RouteKey, hops intent.NextHopSet) (fibRoute, []need, error) {
	r := fibRoute{table: vrf.Table, prefix: key.Prefix, kind: unix.RTN_UNICAST, protocol: RouteProtocol, metric: RouteMetric, locked: true}
	if hops.Len() == 0 {
		return r, nil, errors.New("a remote route has a next hop")
	}
	var needs []need
	for _, n := range hops.All() {
		next, on, mtu, err := e.hop(key, n)
		if err != nil {
			return r, nil, fmt.Errorf("next hop %s: %w", n, err)
		}
		if r.mtu == 0 || uint32(mtu) < r.mtu {
			r.mtu = uint32(mtu)
		}
		r.hops, needs = append(r.hops, next), append(needs, on)
	}
	sortHops(r.hops)
	return r, needs, nil
}

func (e *encoder) hop(key intent.RouteKey, n intent.NextHop) (hop, need, int, error) {
	local, mtu := e.node.VTEP4, e.node.UnderlayMTU-overhead4
	if n.VTEP.Is6() {
		local, mtu = e.node.VTEP6, e.node.UnderlayMTU-overhead6
	}
	if !local.IsValid() {
		return hop{}, need{}, 0, errors.New("the node has no VTEP address of its family")
	}
	if e.p.config.Whole {
		next, on, err := e.hopWhole(key, n)
		return next, on, mtu, err
	}
	fabric := e.s.byMark[fabricMark]
	if fabric == nil || !up(fabric) {
		return hop{}, need{}, 0, fmt.Errorf("device %s: %w", FabricName, reconcile.ErrNotReady)
	}
	index := fabric.Attrs().Index
	via, err := e.f.handle(index, n.RouterMAC, key.Prefix.Addr().Is6())
	if err != nil {
		return hop{}, need{}, 0, err
	}
	tunnel := tunnelKey{vni: n.VNI, src: local, dst: n.VTEP, ttl: outerTTL, flags: tunnelDontFragment}
	if !e.p.config.ZeroChecksum {
		tunnel.flags |= tunnelChecksum
	}
	at := neighbour{index, via}
	return hop{ifindex: index, gateway: via, onlink: true, key: tunnel}, need{at: at, mac: n.RouterMAC, vtep: n.VTEP}, mtu, nil
}

// hopWhole is through the VRF's own bridge and VXLAN device. The gateway is the
// VTEP as routing daemons have it; where its family is not that of the route, or
// it has another MAC already, a handle.
func (e *encoder) hopWhole(key intent.RouteKey, n intent.NextHop) (hop, need, error) {
	if n.VNI != key.VNI {
		return hop{}, need{}, fmt.Errorf("its label is not %d, and vxlan-%d sends no other: the path of the node has to be auto or ebpf", key.VNI, key.VNI)
	}
	if local := e.p.localVTEP(); local.Is4() != n.VTEP.Is4() {
		return hop{}, need{}, fmt.Errorf("vxlan-%d is of the family of %s", key.VNI, local)
	}
	bridge, vxlan := e.s.byMark[bridgeOf(key.VNI).mark], e.s.byMark[vxlanOf(key.VNI).mark]
	// While sluice-vxlan carries a VRF that is on the kernel path, its routes stay there.
	if bridge == nil || vxlan == nil || e.s.fabricCarries() && e.s.byMark[outerOf(key.VNI).mark] != nil {
		return hop{}, need{}, fmt.Errorf("vxlan-%d: %w", key.VNI, reconcile.ErrNotReady)
	}
	if at, there := e.f.forwarding[station{vxlan.Attrs().Index, n.RouterMAC}]; there && at != n.VTEP {
		return hop{}, need{}, fmt.Errorf("its router MAC is behind %s already, and a VXLAN device knows one VTEP for a MAC", at)
	}
	index := bridge.Attrs().Index
	via, v6 := n.VTEP, key.Prefix.Addr().Is6()
	if mac, taken := e.f.neighbours[neighbour{index, via}]; via.Is6() != v6 || taken && mac != n.RouterMAC {
		var err error
		if via, err = e.f.handle(index, n.RouterMAC, v6); err != nil {
			return hop{}, need{}, err
		}
	}
	return hop{ifindex: index, gateway: via, onlink: true}, need{at: neighbour{index, via}, mac: n.RouterMAC, vni: key.VNI, vtep: n.VTEP}, nil
}

// read is the row of a route, the zero value if there is none of which it is.
func (e *encoder) read(key intent.RouteKey, r fibRoute) intent.Route {
	route := intent.Route{Key: key}
	switch {
	case r.kind == unix.RTN_BLACKHOLE:
		route.Kind = intent.RouteBlock
		r.hops = nil // lo, for IPv6
	case r.kind != unix.RTN_UNICAST || len(r.hops) == 0:
		return intent.Route{}
	default:
		if k, ok := e.pairs[r.hops[0].ifindex]; ok {
			route.Kind = intent.RouteLocal
			mac := e.f.neighbours[neighbour{r.hops[0].ifindex, r.hops[0].gateway}]
			route.Gateway = intent.GatewayKey{Bridge: k.Bridge, VLAN: k.VLAN, MAC: mac}
			break
		}
		route.Kind = intent.RouteRemote
		route.NextHops = e.readHops(key, r.hops)
	}
	want, needs, err := e.encode(key, route)
	if err != nil || !want.equal(&r) {
		return intent.Route{}
	}
	for _, n := range needs {
		if e.f.neighbours[n.at] != n.mac {
			return intent.Route{}
		}
	}
	if l := e.s.byMark[dummyOf(key.VNI).mark]; l != nil && e.p.config.Dummy && key.IsHost() && route.Kind == intent.RouteLocal &&
		!e.f.bare(l.Attrs().Index, key.Prefix.Addr(), r.table) {
		return intent.Route{}
	}
	return route
}

func (e *encoder) readHops(key intent.RouteKey, hops []hop) intent.NextHopSet {
	var out []intent.NextHop
	vxlan := e.s.byMark[vxlanOf(key.VNI).mark]
	for _, h := range hops {
		n := intent.NextHop{VTEP: h.key.dst, VNI: h.key.vni, RouterMAC: e.f.neighbours[neighbour{h.ifindex, h.gateway}]}
		if e.p.config.Whole && vxlan != nil {
			n.VTEP, n.VNI = e.f.forwarding[station{vxlan.Attrs().Index, n.RouterMAC}], key.VNI
		}
		if !n.VTEP.IsValid() || n.RouterMAC.IsZero() {
			return ""
		}
		out = append(out, n)
	}
	return intent.NewNextHopSet(out...)
}
