package kernel

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Decision is what the kernel would do with a packet of a VRF.
type Decision struct {
	// Route is the row of the route that it would go by; the zero value if that is
	// not one of Sluice's, or not as Apply leaves it.
	Route intent.Route
	// Text says what it would do, for people.
	Text string
}

// Decide asks the kernel for the route of an address of each destination, as its
// forwarding does: rules and routes of others count. It is in the order of the keys,
// and the zero value where there is no VRF.
func (p *Path) Decide(keys []intent.RouteKey) ([]Decision, error) {
	out := make([]Decision, len(keys))
	err := p.look(takeDevices, func(s *snapshot, f *fib) error {
		socket, err := nl.Subscribe(unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer socket.Close()
		e, sockets := p.newEncoder(s, f), map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: {Socket: socket}}
		for i, k := range keys {
			vrf, ok := s.vrf(k.VNI)
			if !ok {
				continue
			}
			if out[i], err = e.decide(sockets, vrf, k); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// decide looks one address up. The device of the VRF stands for any that is in it.
func (e *encoder) decide(sockets map[int]*nl.SocketHandle, vrf *netlink.Vrf, k intent.RouteKey) (Decision, error) {
	a := SampleOf(k.Prefix)
	req := nl.NewNetlinkRequest(unix.RTM_GETROUTE, 0)
	req.Sockets = sockets
	req.AddData(&nl.RtMsg{RtMsg: unix.RtMsg{Family: uint8(family(a)), Dst_len: uint8(a.BitLen()), Flags: unix.RTM_F_FIB_MATCH | unix.RTM_F_LOOKUP_TABLE}})
	req.AddData(nl.NewRtAttr(unix.RTA_DST, a.AsSlice()))
	req.AddData(nl.NewRtAttr(unix.RTA_OIF, nl.Uint32Attr(uint32(vrf.Index))))
	answer, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWROUTE)
	switch {
	case errors.Is(err, unix.EINVAL):
		return Decision{intent.Route{Key: k, Kind: intent.RouteBlock}, "drop it"}, nil
	case errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EACCES), errors.Is(err, unix.ESRCH):
		return Decision{Text: "answer that it is unreachable"}, nil
	case err != nil:
		return Decision{}, fmt.Errorf("asking for the route to %s in %s: %w", a, vrf.Name, err)
	case len(answer) != 1:
		return Decision{}, fmt.Errorf("asking for the route to %s in %s: %w", a, vrf.Name, errRoute)
	}
	r, ok, err := parseRoute(answer[0])
	if err != nil || !ok {
		return Decision{}, fmt.Errorf("route to %s in %s: %w", a, vrf.Name, errRoute)
	}
	d := Decision{Text: fmt.Sprintf("go by the route to %s of protocol %d in table %d", r.prefix, r.protocol, r.table)}
	if r.table == vrf.Table && r.protocol == RouteProtocol && r.metric == RouteMetric {
		d.Route = e.read(intent.RouteKey{VNI: k.VNI, Prefix: r.prefix}, r)
	}
	return d, nil
}

// SampleOf is the address that Decide looks up for a destination: its first one, but
// for a default route one that nobody has (RFC 5737, RFC 3849).
func SampleOf(p netip.Prefix) netip.Addr {
	switch {
	case !p.Addr().IsUnspecified():
		return p.Addr()
	case p.Addr().Is4():
		return netip.AddrFrom4([4]byte{203, 0, 113, 115})
	}
	return netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 15: 115})
}
