package control

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Messages of RFC 4271, section 4, as far as a session of EVPN needs them.
const (
	messageOpen      = 1
	messageUpdate    = 2
	messageKeepalive = 4

	headerSize = 19

	attrMPReach   = 14
	attrMPUnreach = 15
	attrExtended  = 0x10 // the flag of a length of two bytes

	afiL2VPN    = 25
	safiEVPN    = 70
	routePrefix = 5 // RFC 9136
)

// endOfRIB is the body of an UPDATE that withdraws nothing of EVPN (RFC 4724, section 2).
var endOfRIB = []byte{0, 0, 0, 6, 0x80, attrMPUnreach, 3, 0, afiL2VPN, safiEVPN}

var errShort = errors.New("a BGP message ends too soon")

// frame puts a header before a body.
func frame(kind byte, body []byte) []byte {
	out := make([]byte, headerSize, headerSize+len(body))
	for i := range 16 {
		out[i] = 0xff
	}
	binary.BigEndian.PutUint16(out[16:], uint16(headerSize+len(body)))
	out[18] = kind
	return append(out, body...)
}

// open is an OPEN with EVPN and AS numbers of four bytes, and no graceful restart.
func open(asn uint32, hold uint16, id netip.Addr) []byte {
	capabilities := []byte{1, 4, 0, afiL2VPN, 0, safiEVPN, 65, 4}
	capabilities = binary.BigEndian.AppendUint32(capabilities, asn)
	body := []byte{4}
	body = binary.BigEndian.AppendUint16(body, uint16(asn))
	body = binary.BigEndian.AppendUint16(body, hold)
	body = append(body, id.AsSlice()...)
	body = append(body, byte(len(capabilities)+2), 2, byte(len(capabilities)))
	return frame(messageOpen, append(body, capabilities...))
}

// route is a Type-5 route: the fields that tell it from others, and its VNI, which a withdrawal
// does not have to carry.
type route struct {
	rd     [8]byte
	prefix netip.Prefix
}

type announced struct {
	route
	vni intent.VNI
}

// update reads the Type-5 routes of an UPDATE.
func update(body []byte) (reach, unreach []announced, err error) {
	_, rest, err := sized(body) // plain IPv4, which the session has not
	if err != nil {
		return nil, nil, err
	}
	attributes, _, err := sized(rest)
	if err != nil {
		return nil, nil, err
	}
	for len(attributes) > 0 {
		var code byte
		var value []byte
		if code, value, attributes, err = attribute(attributes); err != nil {
			return nil, nil, err
		}
		switch {
		case len(value) < 3:
		case code == attrMPReach && len(value) > 3:
			// AFI, SAFI, the next hop with its length, and a reserved byte.
			at := 5 + int(value[3])
			if len(value) < at {
				return nil, nil, errShort
			}
			if reach, err = prefixes(reach, value[at:]); err != nil {
				return nil, nil, err
			}
		case code == attrMPUnreach:
			if unreach, err = prefixes(unreach, value[3:]); err != nil {
				return nil, nil, err
			}
		}
	}
	return reach, unreach, nil
}

// sized splits off what a length of two bytes stands before.
func sized(b []byte) (value, rest []byte, err error) {
	if len(b) < 2 {
		return nil, nil, errShort
	}
	n := 2 + int(binary.BigEndian.Uint16(b))
	if len(b) < n {
		return nil, nil, errShort
	}
	return b[2:n], b[n:], nil
}

func attribute(b []byte) (code byte, value, rest []byte, err error) {
	if len(b) < 3 {
		return 0, nil, nil, errShort
	}
	code = b[1]
	if b[0]&attrExtended != 0 {
		value, rest, err = sized(b[2:])
		return code, value, rest, err
	}
	n := 3 + int(b[2])
	if len(b) < n {
		return 0, nil, nil, errShort
	}
	return code, b[3:n], b[n:], nil
}

// prefixes reads the NLRI of Type-5 routes (RFC 9136, section 3.1).
func prefixes(list []announced, b []byte) ([]announced, error) {
	for len(b) > 0 {
		if len(b) < 2 || len(b) < 2+int(b[1]) {
			return nil, errShort
		}
		kind, value := b[0], b[2:2+int(b[1])]
		b = b[2+len(value):]
		if kind != routePrefix {
			return nil, fmt.Errorf("an EVPN route of type %d", kind)
		}
		// RD, ESI, Ethernet tag, length, prefix, gateway, label.
		size := (len(value) - 8 - 10 - 4 - 1 - 3) / 2
		if size != 4 && size != 16 || len(value) != 26+2*size {
			return nil, fmt.Errorf("a Type-5 route of %d bytes", len(value))
		}
		address, _ := netip.AddrFromSlice(value[23 : 23+size])
		label := value[23+2*size:]
		list = append(list, announced{
			route{[8]byte(value[:8]), netip.PrefixFrom(address, int(value[22]))},
			intent.VNI(uint32(label[0])<<16 | uint32(label[1])<<8 | uint32(label[2])),
		})
	}
	return list, nil
}
