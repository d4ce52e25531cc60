package wire

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// Path attributes (IANA registry) that are looked at here.
const (
	attrOrigin          = 1
	attrPath            = 2
	attrNextHop         = 3
	attrMED             = 4
	attrLocalPref       = 5
	attrAtomicAggregate = 6
	attrAggregator      = 7
	attrCommunity       = 8
	attrOriginator      = 9 // ORIGINATOR_ID
	attrCluster         = 10
	attrReach           = 14 // MP_REACH_NLRI
	attrUnreach         = 15 // MP_UNREACH_NLRI
	attrCommunities     = 16 // extended ones
	attrPath4           = 17
	attrAggregator4     = 18

	flagOptional   = 0x80
	flagTransitive = 0x40
	flagExtended   = 0x10

	communityRouterMAC = 0x0603 // RFC 9135 section 8.1
)

// used tells whether Sluice reads an attribute, or the server needs it: ORIGIN, AS_PATH,
// NEXT_HOP, MULTI_EXIT_DISC, LOCAL_PREF, ATOMIC_AGGREGATE, AGGREGATOR, COMMUNITIES,
// ORIGINATOR_ID, CLUSTER_LIST, MP_REACH_NLRI, MP_UNREACH_NLRI, extended communities,
// AS4_PATH and AS4_AGGREGATOR.
func used(kind byte) bool {
	return kind >= 1 && kind <= 10 || kind >= 14 && kind <= 18
}

// self is the next hop of this node's own routes, as the server has them.
var (
	self4 = Self.As4()
	self6 = Self.As16()
)

// Self is the server's end of all loopback connections, and so what it takes for this
// node's own address.
var Self = netip.AddrFrom4([4]byte{127, 179, 255, 254})

// update is an UPDATE message (RFC 4271 section 4.3).
type update struct {
	withdrawn, nlri []byte
	attrs           []attribute
	// broken: the list of attributes does not end where it should.
	broken bool
	// multiProtocol: there is an MP_REACH_NLRI or MP_UNREACH_NLRI, of whichever family; unread:
	// one cannot be read. reach and unreach are those of the session's families.
	multiProtocol, unread bool
	reach, unreach        *routes
	// hop is NEXT_HOP, path4 the AS4_PATH, which counts for nothing where a speaker of two octets has
	// aggregated; origin: there is an ORIGIN.
	hop        nextHop
	path4      asPath
	aggregated bool
	origin     bool
	// why all routes are refused; 0: they are not.
	why Refusal
}

type attribute struct {
	flags, kind byte
	value       []byte
}

func (t attribute) bytes() []byte { return t.appendTo(nil) }

func (t attribute) appendTo(dst []byte) []byte {
	if len(t.value) > 255 || t.flags&flagExtended != 0 {
		dst = append(dst, t.flags|flagExtended, t.kind)
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(t.value)))
	} else {
		dst = append(dst, t.flags, t.kind, byte(len(t.value)))
	}
	return append(dst, t.value...)
}

// parseUpdate takes the body apart. The parts are those of body.
func parseUpdate(body []byte) (u update, err error) {
	malformed := func(why string) error { return fault(codeUpdate, subAttributeList, nil, "an UPDATE whose %s", why) }
	cut := func() (part []byte, ok bool) {
		if len(body) < 2 {
			return nil, false
		}
		n := int(binary.BigEndian.Uint16(body)) + 2
		if n > len(body) {
			return nil, false
		}
		part, body = body[2:n], body[n:]
		return part, true
	}
	var ok bool
	if u.withdrawn, ok = cut(); !ok {
		return u, malformed("withdrawn routes are longer than it is")
	}
	attrs, ok := cut()
	if !ok {
		return u, malformed("attributes are longer than it is")
	}
	u.nlri = body
	for len(attrs) > 0 {
		t, size := cutAttribute(attrs)
		if size == 0 {
			u.broken = true // RFC 7606 section 4
			break
		}
		attrs = attrs[size:]
		// RFC 7606 section 3 g: of most the first counts.
		if slices.ContainsFunc(u.attrs, func(o attribute) bool { return o.kind == t.kind }) {
			if t.kind == attrReach || t.kind == attrUnreach {
				return u, malformed("routes are in two attributes of one type")
			}
			continue
		}
		u.attrs = append(u.attrs, t)
	}
	return u, nil
}

// cutAttribute reads the first attribute and its size; 0: it is cut off.
func cutAttribute(b []byte) (t attribute, size int) {
	if len(b) < 3 {
		return t, 0
	}
	head, n := 3, int(b[2])
	if b[0]&flagExtended != 0 {
		if len(b) < 4 {
			return t, 0
		}
		head, n = 4, int(binary.BigEndian.Uint16(b[2:]))
	}
	if head+n > len(b) {
		return t, 0
	}
	return attribute{b[0], b[1], b[head : head+n]}, head + n
}

// appendUpdate appends an UPDATE message.
func appendUpdate(dst, withdrawn []byte, attrs []attribute, nlri []byte) []byte {
	start := len(dst)
	dst = begin(dst, typeUpdate)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(withdrawn)))
	dst = append(dst, withdrawn...)
	at := len(dst)
	dst = append(dst, 0, 0)
	for _, t := range attrs {
		dst = t.appendTo(dst)
	}
	binary.BigEndian.PutUint16(dst[at:], uint16(len(dst)-at-2))
	return finish(append(dst, nlri...), start)
}

// prefixes are those of a list that can be read (RFC 4271 section 4.3); ok: all can.
func prefixes(b []byte, most int) (readable []byte, ok bool) {
	for n := 0; n < len(b); {
		size := ipv4.size(b[n:])
		if int(b[n]) > most || size > len(b)-n {
			return b[:n], false
		}
		n += size
	}
	return b, true
}

// routes are an MP_REACH_NLRI or MP_UNREACH_NLRI of an agreed family (RFC 4760), or the NLRI field.
type routes struct {
	family Family
	// announced: they have a next hop, which may be one that cannot be read.
	announced, field bool
	hop              nextHop
	nlri             []byte
}

// attribute is the MP_REACH_NLRI or MP_UNREACH_NLRI of some of the routes.
func (r routes) attribute(nlri []byte) attribute {
	value := append(binary.BigEndian.AppendUint16(nil, r.family.AFI), r.family.SAFI)
	if !r.announced {
		return attribute{flagOptional, attrUnreach, append(value, nlri...)}
	}
	hop := r.hop.bytes(r.family)
	return attribute{flagOptional, attrReach, slices.Concat(value, []byte{byte(len(hop))}, hop, []byte{0}, nlri)}
}

// appendTo appends UPDATEs that announce the routes with these attributes, in as many messages as they
// need. ok: they have room for one route each.
func (r routes) appendTo(dst []byte, attrs []attribute) (out []byte, ok bool) {
	if r.field {
		attrs = append(attrs, attribute{flagTransitive, attrNextHop, r.hop.bytes(ipv4)})
	}
	room := maxMessage - headerLen - 4
	for _, t := range attrs {
		room -= len(t.bytes())
	}
	if !r.field {
		room -= 1 + len(r.attribute(nil).bytes()) // its length may take an octet more
	}
	out = dst
	for rest := r.nlri; len(rest) > 0; {
		n := 0
		for n < len(rest) && n+r.family.size(rest[n:]) <= room {
			n += r.family.size(rest[n:])
		}
		switch {
		case n == 0:
			return dst, false
		case r.field:
			out = appendUpdate(out, nil, attrs, rest[:n])
		default:
			out = appendUpdate(out, nil, append(slices.Clone(attrs), r.attribute(rest[:n])), nil)
		}
		rest = rest[n:]
	}
	return out, true
}

// size is the length of the first of some routes that can be read.
func (f Family) size(nlri []byte) int {
	if f == evpn {
		return 2 + int(nlri[1])
	}
	return 1 + (int(nlri[0])+7)/8
}

// routes reads an attribute with routes; those are left out that are not for Sluice. unread: some
// cannot be read.
func (a Agreement) routes(t attribute) (r routes, unread bool) {
	if len(t.value) < 3 {
		return r, true
	}
	family, nlri := familyAt(t.value), t.value[3:]
	if !slices.Contains(a.Families, family) {
		return r, false
	}
	r.family = family
	if t.kind == attrReach {
		if len(nlri) < 2 || len(nlri) < 2+int(nlri[0]) {
			return r, true
		}
		n := 2 + int(nlri[0])
		r.announced, r.hop, nlri = true, family.hop(nlri[1:n-1]), nlri[n:]
	}
	ok := false
	switch family {
	case evpn:
		r.nlri, ok = typeFive(nlri)
	case ipv4:
		r.nlri, ok = prefixes(nlri, 32)
	default:
		r.nlri, ok = prefixes(nlri, 128)
	}
	return r, !ok
}

// typeFive keeps the routes of Type 5 (RFC 9136 section 3.1) among EVPN routes (RFC 7432
// section 7). One of another length is left out; ok: there is none, and all can be read.
func typeFive(nlri []byte) (out []byte, ok bool) {
	out, ok = make([]byte, 0, len(nlri)), true
	for len(nlri) > 0 {
		if len(nlri) < 2 || len(nlri) < evpn.size(nlri) {
			return out, false
		}
		n := evpn.size(nlri)
		switch {
		case nlri[0] != 5:
		case n != 2+34 && n != 2+58:
			ok = false
		default:
			at := len(out)
			out = append(out, nlri[:n]...)
			// The last octet is zero for these types of ESI (RFC 7432 section 5), and the server
			// wants it to be. It is no part of the route's key.
			if esi := out[at+10 : at+20]; esi[0] == 1 || esi[0] == 2 || esi[0] == 4 || esi[0] == 5 {
				esi[9] = 0
			}
		}
		nlri = nlri[n:]
	}
	return out, ok
}

// opaque makes all extended communities opaque but route targets, the encapsulation and
// the router MAC: the server reads others wrongly, or not at all.
func opaque(list []byte) []byte {
	out := slices.Clone(list)
	for c := out; len(c) > 0; c = c[8:] {
		switch binary.BigEndian.Uint16(c) {
		case 0x0002, 0x0102, 0x0202, // route targets (RFC 4360, RFC 5668)
			0x030c, // encapsulation (RFC 9012)
			communityRouterMAC:
		default:
			c[0], c[1] = 0x43, 0xff // non-transitive opaque, of no subtype that is assigned
		}
	}
	return out
}
