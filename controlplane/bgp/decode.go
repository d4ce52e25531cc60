package bgp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	api "github.com/osrg/gobgp/v3/api"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/ovn-sluice/sluice/controlplane/bgp/wire"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// defaultLocalPref is what a path without LOCAL_PREF counts as.
const defaultLocalPref = 100

// communityLLGRStale marks long-lived stale routes (RFC 9494 section 4.2).
const communityLLGRStale = 0xffff0006

// errOtherRoute is a route of a kind that Sluice does not use: EVPN types 1 to 4
// and other families. It is no fault and not counted.
var errOtherRoute = errors.New("not an EVPN IP prefix route")

// decodePath reads a route as the BGP server reports it. An error means that the
// route's identity is unknown; anything else that is wrong with the route is for
// check to find. It never panics: what it cannot read becomes unreadable.
func decodePath(p *api.Path, localASN uint32) (out *path, err error) {
	defer func() {
		switch r := recover(); {
		case r == nil:
		case out == nil:
			err = fmt.Errorf("read the prefix: %v", r)
		default:
			out.unreadable, err = true, nil
		}
	}()
	var prefix api.EVPNIPPrefixRoute
	if p.GetNlri() == nil || !p.GetNlri().MessageIs(&prefix) {
		return nil, errOtherRoute
	}
	if err := p.GetNlri().UnmarshalTo(&prefix); err != nil {
		return nil, fmt.Errorf("read the prefix: %w", err)
	}
	out, err = decodeNLRI(&prefix, p)
	if err != nil || out.withdrawn {
		return out, err
	}
	out.attributes(p, localASN)
	return out, nil
}

// attributes takes in what the BGP server reports beside the prefix. One that cannot be read makes
// the path unreadable.
func (p *path) attributes(from *api.Path, localASN uint32) {
	p.rank = rank{localPref: defaultLocalPref, ebgp: from.GetSourceAsn() != localASN, stale: from.GetStale()}
	p.rank.routerID, _ = netip.ParseAddr(from.GetSourceId())
	for _, attr := range from.GetPattrs() {
		if err := p.attribute(attr); err != nil {
			p.unreadable = true
			return
		}
	}
}

func decodeNLRI(n *api.EVPNIPPrefixRoute, p *api.Path) (*path, error) {
	neighbor, err := netip.ParseAddr(p.GetNeighborIp())
	if err != nil {
		return nil, fmt.Errorf("read the neighbour: %w", err)
	}
	addr, err := netip.ParseAddr(n.GetIpPrefix())
	if err != nil {
		return nil, fmt.Errorf("read the prefix: %w", err)
	}
	rd, err := decodeRD(n.GetRd())
	if err != nil {
		return nil, err
	}
	out := &path{withdrawn: p.GetIsWithdraw(), key: pathKey{
		neighbor: neighbor.Unmap(), rd: rd, tag: n.GetEthernetTag(), addr: addr,
		bits: uint8(min(n.GetIpPrefixLen(), 255)), pathID: p.GetIdentifier(),
	}}
	if bits := int(n.GetIpPrefixLen()); bits <= addr.BitLen() {
		out.prefix = netip.PrefixFrom(addr, bits).Masked()
	}
	if esi := n.GetEsi(); esi.GetType() != 0 {
		out.esi = true
	} else {
		for _, b := range esi.GetValue() {
			out.esi = out.esi || b != 0
		}
	}
	if gw, err := netip.ParseAddr(n.GetGwAddress()); err == nil {
		out.gateway = !gw.IsUnspecified()
	}
	out.hop.VNI = intent.VNI(n.GetLabel())
	return out, nil
}

func decodeRD(a *anypb.Any) (rd, error) {
	m, err := a.UnmarshalNew()
	if err != nil {
		return rd{}, fmt.Errorf("read the route distinguisher: %w", err)
	}
	b := make([]byte, 0, 8)
	switch r := m.(type) {
	case *api.RouteDistinguisherTwoOctetASN:
		b = binary.BigEndian.AppendUint16(append(b, 0, 0), uint16(r.GetAdmin()))
		b = binary.BigEndian.AppendUint32(b, r.GetAssigned())
	case *api.RouteDistinguisherIPAddress:
		admin, err := netip.ParseAddr(r.GetAdmin())
		if err != nil || !admin.Is4() {
			return rd{}, fmt.Errorf("read the route distinguisher: bad address %q", r.GetAdmin())
		}
		b = append(append(b, 0, 1), admin.AsSlice()...)
		b = binary.BigEndian.AppendUint16(b, uint16(r.GetAssigned()))
	case *api.RouteDistinguisherFourOctetASN:
		b = binary.BigEndian.AppendUint32(append(b, 0, 2), r.GetAdmin())
		b = binary.BigEndian.AppendUint16(b, uint16(r.GetAssigned()))
	default:
		return rd{}, errors.New("read the route distinguisher: unknown type")
	}
	return rd(b), nil
}

// attribute takes in one path attribute; kinds that do not matter pass.
func (p *path) attribute(a *anypb.Any) error {
	m, err := a.UnmarshalNew()
	if err != nil {
		return err
	}
	switch v := m.(type) {
	case *api.OriginAttribute:
		p.rank.origin = uint8(v.GetOrigin())
	case *api.LocalPrefAttribute:
		p.rank.localPref = v.GetLocalPref()
	case *api.MultiExitDiscAttribute:
		p.rank.med = v.GetMed()
	case *api.AsPathAttribute:
		p.asPath(v)
	case *api.CommunitiesAttribute:
		for _, c := range v.GetCommunities() {
			p.rank.longStale = p.rank.longStale || c == communityLLGRStale
			p.rank.shutdown = p.rank.shutdown || c == communityGracefulShutdown
		}
	case *api.NextHopAttribute:
		return p.nextHop(v.GetNextHop())
	case *api.MpReachNLRIAttribute:
		if hops := v.GetNextHops(); len(hops) > 0 {
			return p.nextHop(hops[0])
		}
	case *api.ExtendedCommunitiesAttribute:
		return p.communities(v.GetCommunities())
	case *api.UnknownAttribute:
		if v.GetType() == wire.NoteType {
			n := wire.ReadNote(v.GetValue())
			p.refused, p.linkLocal = refusedFor[n.Why], n.LinkLocal
		}
	}
	return nil
}

func (p *path) nextHop(s string) error {
	a, err := netip.ParseAddr(s)
	p.hop.VTEP = a.Unmap()
	return err
}

// asPath counts as RFC 4271 section 9.1.2.2 a and RFC 5065 section 5.3 do: a set
// is one hop, confederation segments are none.
func (p *path) asPath(v *api.AsPathAttribute) {
	for _, s := range v.GetSegments() {
		switch s.GetType() {
		case api.AsSegment_AS_SEQUENCE:
			if p.rank.pathLen == 0 && len(s.GetNumbers()) > 0 {
				p.rank.neighborAS = s.GetNumbers()[0]
			}
			p.rank.pathLen += len(s.GetNumbers())
		case api.AsSegment_AS_SET:
			p.rank.pathLen++
		}
	}
}

func (p *path) communities(list []*anypb.Any) error {
	const routeTarget = 2 // RFC 4360 section 4
	vxlan, other := false, false
	for _, a := range list {
		m, err := a.UnmarshalNew()
		if err != nil {
			return err
		}
		switch c := m.(type) {
		case *api.TwoOctetAsSpecificExtended:
			if c.GetSubType() == routeTarget && c.GetIsTransitive() {
				b := binary.BigEndian.AppendUint16([]byte{0, routeTarget}, uint16(c.GetAsn()))
				p.targets = append(p.targets, intent.RouteTarget(binary.BigEndian.AppendUint32(b, c.GetLocalAdmin())))
			}
		case *api.FourOctetAsSpecificExtended:
			if c.GetSubType() == routeTarget && c.GetIsTransitive() {
				b := binary.BigEndian.AppendUint32([]byte{2, routeTarget}, c.GetAsn())
				p.targets = append(p.targets, intent.RouteTarget(binary.BigEndian.AppendUint16(b, uint16(c.GetLocalAdmin()))))
			}
		case *api.IPv4AddressSpecificExtended:
			admin, err := netip.ParseAddr(c.GetAddress())
			if c.GetSubType() == routeTarget && c.GetIsTransitive() && err == nil && admin.Is4() {
				b := append([]byte{1, routeTarget}, admin.AsSlice()...)
				p.targets = append(p.targets, intent.RouteTarget(binary.BigEndian.AppendUint16(b, uint16(c.GetLocalAdmin()))))
			}
		case *api.EncapExtended:
			vxlan = vxlan || c.GetTunnelType() == tunnelVXLAN
			other = other || c.GetTunnelType() != tunnelVXLAN
		case *api.RouterMacExtended:
			mac, err := intent.ParseMAC(c.GetMac())
			if err != nil {
				return err
			}
			if !p.hasMAC {
				p.hop.RouterMAC, p.hasMAC = mac, true
			}
		}
	}
	p.otherEncap = other && !vxlan
	return nil
}
