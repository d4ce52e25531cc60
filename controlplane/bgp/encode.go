package bgp

import (
	"encoding/binary"
	"net/netip"

	api "github.com/osrg/gobgp/v3/api"
)

// Wire numbers of a Type-5 route.
const (
	routeTypeIPPrefix = 5 // RFC 9136 section 3
	rdTypeIPv4        = 1 // RFC 4364 section 4.2

	attrOrigin      = 1
	attrMPReach     = 14
	attrExtComms    = 16
	flagOptional    = 0x80
	flagTransitive  = 0x40
	flagExtendedLen = 0x10

	originIGP = 0
)

// evpnFamily is l2vpn-evpn (AFI 25, SAFI 70, RFC 7432 section 7).
func evpnFamily() *api.Family {
	return &api.Family{Afi: api.Family_AFI_L2VPN, Safi: api.Family_SAFI_EVPN}
}

// encodeNLRI writes RFC 9136 section 3.1: RD type 1, no Ethernet segment, no tag,
// no gateway address, and the VNI as the raw 24 bits of the label field (RFC
// 8365 section 5.1.3).
func encodeNLRI(t type5) []byte {
	addr := t.prefix.Addr().AsSlice()
	b := make([]byte, 0, 2+26+2*len(addr))
	b = append(b, routeTypeIPPrefix, byte(26+2*len(addr)))
	b = append(b, 0, rdTypeIPv4)
	b = append(b, t.routerID.AsSlice()...)
	b = binary.BigEndian.AppendUint16(b, t.index)
	b = append(b, make([]byte, 10+4)...) // ESI, Ethernet tag
	b = append(b, byte(t.prefix.Bits()))
	b = append(b, addr...)
	b = append(b, make([]byte, len(addr))...) // gateway address
	return append(b, byte(t.label>>16), byte(t.label>>8), byte(t.label))
}

// encodeAttributes writes the path attributes, each with its header.
func encodeAttributes(t type5) [][]byte {
	hop := t.nextHop.AsSlice()
	reach := []byte{0, 25, 70, byte(len(hop))}
	reach = append(reach, hop...)
	reach = append(reach, 0)
	reach = append(reach, encodeNLRI(t)...)

	comms := []byte(t.targets)
	comms = append(comms, 0x03, 0x0c, 0, 0, 0, 0, 0, tunnelVXLAN) // RFC 9012 section 4.1
	comms = append(comms, 0x06, 0x03)                             // RFC 9135 section 8.1
	comms = append(comms, t.routerMAC[:]...)

	out := [][]byte{
		attribute(flagTransitive, attrOrigin, []byte{originIGP}),
		attribute(flagOptional, attrMPReach, reach),
		attribute(flagOptional|flagTransitive, attrExtComms, comms),
	}
	if t.shutdown {
		return append(out, shutdownAttributes()...)
	}
	return append(out, preferenceAttributes(t)...)
}

func attribute(flags, kind byte, value []byte) []byte {
	b := binary.BigEndian.AppendUint16([]byte{flags | flagExtendedLen, kind}, uint16(len(value)))
	return append(b, value...)
}

// encodePath is the route as the BGP server takes it.
func encodePath(t type5, withdraw bool) *api.Path {
	p := &api.Path{Family: evpnFamily(), NlriBinary: encodeNLRI(t), IsWithdraw: withdraw}
	if !withdraw {
		p.PattrsBinary = encodeAttributes(t)
	}
	return p
}

// wireRD is the distinguisher of a route, as bytes.
func wireRD(routerID netip.Addr, index uint16) rd {
	a := routerID.As4()
	return rd{0, rdTypeIPv4, a[0], a[1], a[2], a[3], byte(index >> 8), byte(index)}
}
