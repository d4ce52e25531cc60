package kernel

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/link"
)

const (
	// RouteProtocol is the protocol number of Sluice's routes (rtm_protocol): no
	// other program is known to use it.
	RouteProtocol = 115
	// RouteMetric is the metric of the routes of tenants, and of no other: vrf_guard
	// lets through only what such a route leads to (bpf/lib/guard.h has the same
	// number). It is less than that of what the kernel adds by itself (256 for
	// IPv6), and none that routing daemons use: a route of others is never
	// replaced by ours.
	RouteMetric = 173
	// metricLast is that of the unreachable default route, after all others
	// (Documentation/networking/vrf.rst of the kernel).
	metricLast = 4278198272
)

// hop is one next hop of a route.
type hop struct {
	ifindex int
	gateway netip.Addr
	onlink  bool
	key     tunnelKey // the zero value: none
}

// fibRoute is one route of the kernel, as far as Sluice looks at it.
type fibRoute struct {
	table    uint32
	prefix   netip.Prefix
	kind     uint8 // RTN_*
	protocol uint8
	metric   uint32
	mtu      uint32
	locked   bool // the MTU is
	source   netip.Addr
	hops     []hop
}

func (r *fibRoute) equal(o *fibRoute) bool {
	return r.table == o.table && r.prefix == o.prefix && r.kind == o.kind && r.protocol == o.protocol &&
		r.metric == o.metric && r.mtu == o.mtu && r.locked == o.locked && r.source == o.source && slices.Equal(r.hops, o.hops)
}

// message is the route as the library writes it.
func (r *fibRoute) message() *netlink.Route {
	m := &netlink.Route{
		Family: family(r.prefix.Addr()), Table: int(r.table), Dst: ipNet(r.prefix), Type: int(r.kind),
		Protocol: netlink.RouteProtocol(r.protocol), Priority: int(r.metric), MTU: int(r.mtu), MTULock: r.locked,
		Src: r.source.AsSlice(),
	}
	for _, h := range r.hops {
		next := &netlink.NexthopInfo{LinkIndex: h.ifindex, Gw: h.gateway.AsSlice()}
		if h.gateway.Is6() && r.prefix.Addr().Is4() {
			next.Gw, next.Via = nil, &netlink.Via{AddrFamily: unix.AF_INET6, Addr: h.gateway.AsSlice()}
		}
		if h.onlink {
			next.Flags = int(netlink.FLAG_ONLINK)
		}
		if h.key != (tunnelKey{}) {
			next.Encap = &h.key
		}
		m.MultiPath = append(m.MultiPath, next)
	}
	if len(m.MultiPath) == 1 {
		one := m.MultiPath[0]
		m.LinkIndex, m.Gw, m.Via, m.Flags, m.Encap, m.MultiPath = one.LinkIndex, one.Gw, one.Via, one.Flags, one.Encap, nil
	}
	return m
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func family(a netip.Addr) int {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// replace makes the route, in the place of one of ours of the same prefix.
func (r *fibRoute) replace(h *netlink.Handle) error {
	if err := h.RouteReplace(r.message()); err != nil {
		return fmt.Errorf("route %s of table %d: %w", r.prefix, r.table, err)
	}
	return nil
}

// removeRoute deletes a route of a table; one that is not there is no error. What is
// not given counts as any: a protocol has to be.
func removeRoute(h *netlink.Handle, r fibRoute) error {
	m := r.message()
	m.Scope = unix.RT_SCOPE_NOWHERE // any
	err := h.RouteDel(m)
	if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("removing route %s of table %d: %w", r.prefix, r.table, err)
	}
	return nil
}

// tableRoutes reads the routes of a table in both families; 0 means all tables.
// The library's own listing does not know the tunnel keys.
func tableRoutes(table uint32) ([]fibRoute, error) {
	var out []fibRoute
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		messages, err := link.Dump(func() ([][]byte, error) { return dumpRoutes(family, table) })
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EAFNOSUPPORT) {
			continue // the table has never had a route; there is no IPv6
		}
		if err != nil {
			return nil, fmt.Errorf("listing the routes of table %d: %w", table, err)
		}
		for _, m := range messages {
			r, ok, err := parseRoute(m)
			if err != nil {
				return nil, fmt.Errorf("listing the routes of table %d: %w", table, err)
			}
			if ok && (table == 0 || r.table == table) {
				out = append(out, r)
			}
		}
	}
	return out, nil
}

// dumpRoutes has the kernel pick the table. The socket is of the calling thread's
// namespace.
func dumpRoutes(family int, table uint32) ([][]byte, error) {
	socket, err := nl.Subscribe(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	if err := unix.SetsockoptInt(socket.GetFd(), unix.SOL_NETLINK, unix.NETLINK_GET_STRICT_CHK, 1); err != nil {
		return nil, fmt.Errorf("strict checks of netlink: %w", err)
	}
	req := nl.NewNetlinkRequest(unix.RTM_GETROUTE, unix.NLM_F_DUMP)
	req.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: {Socket: socket}}
	req.AddData(&nl.RtMsg{RtMsg: unix.RtMsg{Family: uint8(family)}})
	if table != 0 {
		req.AddData(nl.NewRtAttr(unix.RTA_TABLE, nl.Uint32Attr(table)))
	}
	return req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWROUTE)
}

var errRoute = errors.New("malformed message of a route")

// parseRoute reads one route; it is not ok if the message is of none.
func parseRoute(m []byte) (r fibRoute, ok bool, err error) {
	if len(m) < unix.SizeofRtMsg {
		return r, false, errRoute
	}
	msg := nl.DeserializeRtMsg(m)
	if msg.Flags&unix.RTM_F_CLONED != 0 || msg.Family != unix.AF_INET && msg.Family != unix.AF_INET6 {
		return r, false, nil
	}
	attrs, err := parseAttrs(m[unix.SizeofRtMsg:])
	if err != nil {
		return r, false, errRoute
	}
	r = fibRoute{table: uint32(msg.Table), kind: msg.Type, protocol: msg.Protocol}
	dst := netip.IPv4Unspecified()
	if msg.Family == unix.AF_INET6 {
		dst = netip.IPv6Unspecified()
	}
	for _, a := range attrs {
		good := true
		switch a.Attr.Type &^ unix.NLA_F_NESTED {
		case unix.RTA_DST:
			dst, good = netip.AddrFromSlice(a.Value)
		case unix.RTA_TABLE:
			r.table, good = word(a.Value)
		case unix.RTA_PRIORITY:
			r.metric, good = word(a.Value)
		case unix.RTA_PREFSRC:
			r.source, good = netip.AddrFromSlice(a.Value)
		case unix.RTA_METRICS:
			good = r.metrics(a.Value)
		case unix.RTA_MULTIPATH:
			r.hops, good = multipath(a.Value)
		}
		if !good {
			return r, false, errRoute
		}
	}
	if len(r.hops) == 0 {
		one, err := parseHop(attrs, int(msg.Flags), 0)
		if err != nil {
			return r, false, err
		}
		if one != (hop{}) {
			r.hops = []hop{one}
		}
	}
	sortHops(r.hops)
	r.prefix = netip.PrefixFrom(dst, int(msg.Dst_len))
	return r, r.prefix.IsValid(), nil
}

func (r *fibRoute) metrics(b []byte) bool {
	attrs, err := parseAttrs(b)
	for _, a := range attrs {
		v, ok := word(a.Value)
		switch {
		case a.Attr.Type == unix.RTAX_MTU && ok:
			r.mtu = v
		case a.Attr.Type == unix.RTAX_LOCK && ok:
			r.locked = v&(1<<unix.RTAX_MTU) != 0
		}
	}
	return err == nil
}

// multipath reads struct rtnexthop and its attributes, one after the other.
func multipath(b []byte) (out []hop, ok bool) {
	for len(b) >= unix.SizeofRtNexthop {
		length := int(binary.NativeEndian.Uint16(b))
		if length < unix.SizeofRtNexthop || length > len(b) {
			return nil, false
		}
		attrs, err := parseAttrs(b[unix.SizeofRtNexthop:length])
		if err != nil {
			return nil, false
		}
		h, err := parseHop(attrs, int(b[2]), int(int32(binary.NativeEndian.Uint32(b[4:]))))
		if err != nil {
			return nil, false
		}
		out = append(out, h)
		b = b[min((length+3)&^3, len(b)):]
	}
	return out, len(b) == 0
}

func parseHop(attrs []syscall.NetlinkRouteAttr, flags, ifindex int) (hop, error) {
	h := hop{ifindex: ifindex, onlink: flags&unix.RTNH_F_ONLINK != 0}
	encapped := 0
	var encap []byte
	for _, a := range attrs {
		switch a.Attr.Type &^ unix.NLA_F_NESTED {
		case unix.RTA_OIF:
			if v, ok := word(a.Value); ok {
				h.ifindex = int(v)
			}
		case unix.RTA_GATEWAY:
			gateway, ok := netip.AddrFromSlice(a.Value)
			if !ok {
				return hop{}, errRoute
			}
			h.gateway = gateway
		case unix.RTA_VIA:
			// struct rtvia: the family, then the address.
			if len(a.Value) > 2 {
				h.gateway, _ = netip.AddrFromSlice(a.Value[2:])
			}
		case unix.RTA_ENCAP_TYPE:
			if len(a.Value) == 2 {
				encapped = int(binary.NativeEndian.Uint16(a.Value))
			}
		case unix.RTA_ENCAP:
			encap = a.Value
		}
	}
	if encapped == encapIP4 || encapped == encapIP6 {
		return h, h.key.Decode(encap)
	}
	return h, nil
}

func word(b []byte) (uint32, bool) {
	if len(b) != 4 {
		return 0, false
	}
	return binary.NativeEndian.Uint32(b), true
}

// sortHops puts them into one order: the kernel's is that of their making.
func sortHops(hops []hop) {
	slices.SortFunc(hops, func(a, b hop) int {
		return cmp.Or(a.key.dst.Compare(b.key.dst), cmp.Compare(a.key.vni, b.key.vni), a.gateway.Compare(b.gateway), cmp.Compare(a.ifindex, b.ifindex))
	})
}

// parseAttrs reads attributes. The padding of the last one may be missing, which the
// library's own does not expect.
func parseAttrs(b []byte) ([]syscall.NetlinkRouteAttr, error) {
	padded := make([]byte, (len(b)+unix.RTA_ALIGNTO-1)&^(unix.RTA_ALIGNTO-1))
	copy(padded, b)
	return nl.ParseRouteAttr(padded)
}
