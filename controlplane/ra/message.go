package ra

import (
	"errors"
	"fmt"
	"net/netip"
)

// Message types and their least length (RFC 4861 sections 4.1 and 4.2), and the
// hop limit that says that a packet comes from the link (section 6.1).
const (
	typeSolicit   = 133
	typeAdvertise = 134

	solicitLength   = 8
	advertiseLength = 16
	onLinkHops      = 255
)

// kind is what a valid message is.
type kind uint8

const (
	solicitation kind = iota + 1
	advertisement
)

var errNotOurs = errors.New("not a message of router discovery")

// read validates an ICMPv6 message (RFC 4861 sections 6.1.1 and 6.1.2). The kernel
// has checked its checksum.
func read(b []byte, from netip.Addr, hops int) (kind, error) {
	if len(b) < solicitLength {
		return 0, errNotOurs
	}
	var k kind
	header := advertiseLength
	switch b[0] {
	case typeSolicit:
		k, header = solicitation, solicitLength
	case typeAdvertise:
		k = advertisement
	default:
		return 0, errNotOurs
	}
	switch {
	case hops != onLinkHops:
		return 0, fmt.Errorf("hop limit %d: it has passed a router", hops)
	case b[1] != 0:
		return 0, fmt.Errorf("code %d", b[1])
	case len(b) < header:
		return 0, fmt.Errorf("%d bytes", len(b))
	case k == advertisement && !(from.Is6() && from.IsLinkLocalUnicast()):
		return 0, fmt.Errorf("source %s is not link-local", from)
	}
	for options := b[header:]; len(options) > 0; {
		if len(options) < 2 || options[1] == 0 || int(options[1])*8 > len(options) {
			return 0, errors.New("malformed options")
		}
		options = options[int(options[1])*8:]
	}
	return k, nil
}

// advertise is this node's advertisement: no router to anyone (lifetime 0), nothing
// said of hop limit and timers, and its link-layer address if it has one. The
// kernel fills in the checksum.
func advertise(mac []byte) []byte {
	return withSource(make([]byte, advertiseLength), typeAdvertise, mac)
}

// solicit asks the routers of the link to advertise themselves at once.
func solicit(mac []byte) []byte { return withSource(make([]byte, solicitLength), typeSolicit, mac) }

// withSource adds the source link-layer address option (RFC 4861 section 4.6.1).
func withSource(b []byte, kind byte, mac []byte) []byte {
	b[0] = kind
	if len(mac) == 6 {
		b = append(append(b, 1, 1), mac...)
	}
	return b
}
