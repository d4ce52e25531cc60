package wire

import (
	"encoding/binary"
	"slices"
)

// Codes of capabilities (IANA registry).
const (
	capMultiProtocol = 1
	capRefresh       = 2
	capNextHop       = 5
	capRestart       = 64
	capFourOctetAS   = 65
	capLongLived     = 71

	optCapabilities = 2
	optExtended     = 255 // RFC 9072
)

// Family is an address family (RFC 4760).
type Family struct {
	AFI  uint16
	SAFI uint8
}

// The families that Sluice reads.
var (
	evpn  = Family{25, 70}
	ipv4  = Family{1, 1}
	ipv6  = Family{2, 1}
	known = []Family{evpn, ipv4, ipv6}
)

func familyAt(b []byte) Family { return Family{binary.BigEndian.Uint16(b), b[2]} }

// open is an OPEN message (RFC 4271 section 4.2) as far as the session depends on it.
type open struct {
	asn      uint32
	hold     uint16
	id       uint32
	families []Family
	// restart: it has the graceful restart capability; notices: with the N bit (RFC 8538).
	restart, notices bool
	// wide: AS numbers have four octets (RFC 6793).
	wide bool
	caps []capability
}

type capability struct {
	code  byte
	value []byte
}

// parseOpen reads an OPEN message whose header has been checked.
func parseOpen(msg []byte) (open, error) {
	b := msg[headerLen:]
	o := open{asn: uint32(binary.BigEndian.Uint16(b[1:])), hold: binary.BigEndian.Uint16(b[3:]), id: binary.BigEndian.Uint32(b[5:])}
	caps, err := capabilities(b[9:])
	if err != nil {
		return o, err
	}
	for _, c := range caps {
		if c, ok := c.usable(); ok {
			o.take(c)
		}
	}
	if len(o.families) > 0 {
		return o, nil
	}
	if i := slices.IndexFunc(caps, capability.family); i >= 0 {
		// Without any, the server would take it for one of IPv4 unicast.
		o.caps = append(o.caps, caps[i])
	} else {
		o.families = []Family{ipv4} // RFC 4760 section 8
	}
	return o, nil
}

func (o *open) take(c capability) {
	switch c.code {
	case capMultiProtocol:
		if f := (Family{binary.BigEndian.Uint16(c.value), c.value[3]}); !slices.Contains(o.families, f) {
			o.families = append(o.families, f)
		}
	case capFourOctetAS:
		o.asn, o.wide = binary.BigEndian.Uint32(c.value), true
	case capRestart:
		o.restart, o.notices = true, c.value[0]&0x40 != 0
	}
	// One of each kind, the last; of several families each is one.
	o.caps = append(slices.DeleteFunc(o.caps, func(old capability) bool {
		return old.code == c.code && (c.code != capMultiProtocol || slices.Equal(old.value, c.value))
	}), c)
}

// capabilities reads the optional parameters, from their length on (RFC 5492, RFC 9072).
func capabilities(b []byte) (out []capability, err error) {
	bad := fault(codeOpen, 0, nil, "the optional parameters of an OPEN are cut off")
	n, b, wide := int(b[0]), b[1:], 1
	if n != 0 && len(b) >= 3 && b[0] == optExtended { // whatever n is otherwise
		n, b, wide = int(binary.BigEndian.Uint16(b[1:])), b[3:], 2
	}
	if n != len(b) {
		return nil, bad
	}
	for len(b) > 0 {
		if len(b) < 1+wide {
			return nil, bad
		}
		kind, size := b[0], int(b[1])
		if wide == 2 {
			size = int(binary.BigEndian.Uint16(b[1:]))
		}
		if b = b[1+wide:]; size > len(b) {
			return nil, bad
		}
		if kind != optCapabilities {
			return nil, fault(codeOpen, subUnknownOptional, nil, "an OPEN with the unknown optional parameter %d", kind)
		}
		for c := b[:size]; len(c) > 0; c = c[2+int(c[1]):] {
			if len(c) < 2 || len(c) < 2+int(c[1]) {
				return nil, bad
			}
			out = append(out, capability{c[0], c[2 : 2+int(c[1])]})
		}
		b = b[size:]
	}
	return out, nil
}

// family tells whether a capability names an address family, of those that Sluice reads or not.
func (c capability) family() bool { return c.code == capMultiProtocol && len(c.value) == 4 }

// usable is what the server is told of a capability. One that Sluice does not use, or of a
// wrong length, counts as not there; of others the families stay that Sluice reads.
func (c capability) usable() (capability, bool) {
	switch c.code {
	case capMultiProtocol:
		return c, c.family() && slices.Contains(known, Family{binary.BigEndian.Uint16(c.value), c.value[3]})
	case capRefresh:
		return c, len(c.value) == 0
	case capNextHop:
		return c.list(0, 6)
	case capRestart:
		return c.list(2, 4)
	case capFourOctetAS:
		return c, len(c.value) == 4
	case capLongLived:
		return c.list(0, 7)
	}
	return c, false
}

// list is a capability of a head and entries of one size, one for each family.
func (c capability) list(head, size int) (capability, bool) {
	if len(c.value) < head || (len(c.value)-head)%size != 0 {
		return c, false
	}
	out, seen := slices.Clone(c.value[:head]), []Family{}
	for b := c.value[head:]; len(b) > 0; b = b[size:] {
		f := familyAt(b)
		if c.code == capNextHop {
			f.SAFI = b[3] // it has two octets there (RFC 8950 section 4)
		}
		if slices.Contains(known, f) && !slices.Contains(seen, f) {
			out, seen = append(out, b[:size]...), append(seen, f)
		}
	}
	return capability{c.code, out}, true
}

// listed are the families of a capability that is a list, if it is there.
func (o *open) listed(code byte, head, size int) (out []Family) {
	for _, c := range o.caps {
		if c.code != code {
			continue
		}
		for b := c.value[head:]; len(b) > 0; b = b[size:] {
			out = append(out, familyAt(b))
		}
	}
	return out
}

// drop leaves out a capability, of which there is one at most, and returns it.
func (o *open) drop(code byte) (dropped capability) {
	o.caps = slices.DeleteFunc(o.caps, func(c capability) bool {
		if c.code == code {
			dropped = c
		}
		return c.code == code
	})
	return dropped
}

// message is the OPEN for the server: that of the neighbour with the capabilities that are
// usable, and another hold time.
func (o open) message(msg []byte, hold uint16) []byte {
	var caps []byte
	for _, c := range o.caps {
		caps = append(append(caps, c.code, byte(len(c.value))), c.value...)
	}
	out := append(begin(nil, typeOpen), msg[headerLen:headerLen+9]...)
	binary.BigEndian.PutUint16(out[headerLen+3:], hold)
	if len(caps) == 0 {
		return finish(append(out, 0), 0)
	}
	out = append(out, byte(len(caps)+2), optCapabilities, byte(len(caps)))
	return finish(append(out, caps...), 0)
}

// forwarding sets the F bits of this node's own OPEN (RFC 4724 section 3, RFC 9494 section
// 3.1), and the R bit after a restart.
func forwarding(msg []byte, restarted bool) []byte {
	out := slices.Clone(msg)
	caps, err := capabilities(out[headerLen+9:])
	if err != nil {
		return msg
	}
	for _, c := range caps { // their values are parts of out
		switch {
		case c.code == capRestart && len(c.value) >= 2:
			if restarted {
				c.value[0] |= 0x80
			}
			for b := c.value[2:]; len(b) >= 4; b = b[4:] {
				b[3] |= 0x80
			}
		case c.code == capLongLived:
			for b := c.value; len(b) >= 7; b = b[7:] {
				b[3] |= 0x80
			}
		}
	}
	return out
}
