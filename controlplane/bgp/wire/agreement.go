package wire

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
)

// Agreement is what the two ends of a session have agreed on, and how messages are
// rewritten by it.
type Agreement struct {
	// Families are those of both ends.
	Families []Family
	// Loopback: the neighbour is on this node, so its next hops may be.
	Loopback bool
	// Local is this end's address, which takes the place of Self in next hops.
	Local netip.Addr
	// Restart: both ends keep routes over a restart (RFC 4724); Notices: over
	// NOTIFICATIONs, too (RFC 8538).
	Restart, Notices bool
	// Untimed: the hold time is 0.
	Untimed bool
	// AS and ID are this node's, which its own routes may have in their attributes when they come
	// back. External: the neighbour is in another AS. Narrow: it sends AS numbers of two octets (RFC
	// 6793).
	AS, ID           uint32
	External, Narrow bool
	// VTEPs are the next hops of this node's routes of EVPN.
	VTEPs []netip.Addr
}

// agree reads both ends' OPENs.
func agree(ours, theirs open) Agreement {
	a := Agreement{
		Restart: ours.restart && theirs.restart, Untimed: theirs.hold == 0,
		Notices: ours.restart && theirs.restart && ours.notices && theirs.notices,
		AS:      ours.asn, ID: ours.id, External: ours.asn != theirs.asn, Narrow: !ours.wide || !theirs.wide,
	}
	for _, f := range known {
		if slices.Contains(ours.families, f) && slices.Contains(theirs.families, f) {
			a.Families = append(a.Families, f)
		}
	}
	return a
}

// Outcome is what became of a message.
type Outcome uint8

const (
	// Passed: all of it that Sluice reads.
	Passed Outcome = iota
	// Idle: nothing of it is for Sluice. A KEEPALIVE takes its place.
	Idle
	// Ignored: some of it could not be read. A KEEPALIVE takes its place, if it was all.
	Ignored
)

// In appends what the server is to read of one of the neighbour's messages, other than
// OPEN. The error is a Fault.
func (a Agreement) In(dst, msg []byte) ([]byte, Outcome, error) {
	switch msg[18] {
	case typeOpen:
		return dst, Passed, fault(codeFSM, 3, nil, "a second OPEN in one session")
	case typeRefresh:
		// The subtype is RFC 7313's; all but 0 say what the neighbour does itself.
		f := Family{binary.BigEndian.Uint16(msg[headerLen:]), msg[headerLen+3]}
		if msg[headerLen+2] != 0 || !slices.Contains(a.Families, f) {
			return append(dst, keepalive...), Idle, nil
		}
		return append(dst, msg...), Passed, nil
	case typeUpdate:
		out, what, err := a.update(dst, msg[headerLen:])
		if err == nil && what != Passed {
			out = append(dst, keepalive...)
		}
		return out, what, err
	}
	return append(dst, msg...), Passed, nil
}

// update rewrites the body of an UPDATE. It appends messages of the type, none if nothing of it is for
// the server. What the neighbour withdraws comes first: a route that is announced, too, is announced
// (RFC 4271 section 4.3).
func (a Agreement) update(dst, body []byte) ([]byte, Outcome, error) {
	u, err := parseUpdate(body)
	if err != nil {
		return dst, Passed, err
	}
	if f, ok := u.endOfRIB(); ok && slices.Contains(a.Families, f) {
		return appendUpdate(dst, u.withdrawn, u.attrs, u.nlri), Passed, nil
	}
	if !slices.Contains(a.Families, ipv4) {
		u.withdrawn, u.nlri = nil, nil
	}
	for _, list := range [][]byte{u.withdrawn, u.nlri} {
		if _, ok := prefixes(list, 32); !ok {
			return dst, Passed, fault(codeUpdate, subNetworkField, nil, "an UPDATE with a wrong IPv4 prefix")
		}
	}
	if err := u.keep(a); err != nil {
		return dst, Passed, err
	}
	out := dst
	if len(u.withdrawn) > 0 || u.unreach != nil {
		var attrs []attribute
		if u.unreach != nil {
			attrs = []attribute{u.unreach.attribute(u.unreach.nlri)}
		}
		out = appendUpdate(out, u.withdrawn, attrs, nil)
	}
	if len(u.nlri) > 0 {
		out = u.announce(out, a, routes{family: ipv4, announced: true, field: true, hop: u.hop, nlri: u.nlri})
	}
	if u.reach != nil {
		out = u.announce(out, a, *u.reach)
	}
	switch {
	case u.unread, len(out) == len(dst) && u.broken && !u.multiProtocol: // its routes are behind the cut
		return out, Ignored, nil
	case len(out) == len(dst):
		return out, Idle, nil
	}
	return out, Passed, nil
}

// keep reads the attributes, and keeps what the server is to read of those without routes.
func (u *update) keep(a Agreement) error {
	if u.broken {
		u.refuse(Malformed) // RFC 7606 section 4
	}
	kept := u.attrs[:0:0]
	for _, t := range u.attrs {
		switch {
		case t.kind == attrReach || t.kind == attrUnreach:
			u.take(a, t)
		case !used(t.kind):
			if t.flags&flagOptional == 0 {
				return fault(codeUpdate, subUnrecognized, t.bytes(), "an UPDATE with the unknown well-known attribute %d", t.kind)
			}
		case t.kind == attrAggregator: // with AS_TRANS one of four octets has (RFC 6793 section 4.2.3)
			u.aggregated = a.Narrow && len(t.value) == 6 && binary.BigEndian.Uint16(t.value) != asTrans
		case !a.ignored(t.kind) && u.read(a, t):
			if t.kind == attrCommunities {
				t.value = opaque(t.value)
			}
			t.flags = forms[t.kind].flags // without the bits that say nothing here
			kept = append(kept, t)
		}
	}
	u.attrs = kept
	if u.readPath(a); !u.origin {
		u.refuse(Malformed)
	}
	return nil
}

// take reads an attribute with routes.
func (u *update) take(a Agreement, t attribute) {
	u.multiProtocol = true
	r, unread := a.routes(t)
	u.unread = u.unread || unread
	if t.kind == attrReach && (unread || !forms[attrReach].fits(t)) {
		u.refuse(Malformed)
	}
	switch {
	case len(r.nlri) == 0:
	case r.announced:
		u.reach = &r
	default:
		u.unreach = &r
	}
}

// endOfRIB tells whether an UPDATE is End-of-RIB (RFC 4724 section 2), and of which family.
func (u update) endOfRIB() (f Family, ok bool) {
	if len(u.withdrawn) > 0 || len(u.nlri) > 0 || u.broken {
		return f, false
	}
	switch len(u.attrs) {
	case 0:
		return ipv4, true
	case 1:
		if t := u.attrs[0]; t.kind == attrUnreach && len(t.value) == 3 {
			return familyAt(t.value), true
		}
	}
	return f, false
}

// endOf is the family of an UPDATE of the server's that is End-of-RIB, agreed or not.
func endOf(msg []byte) (f Family, ok bool) {
	if len(msg) > longestEnd {
		return f, false
	}
	u, err := parseUpdate(msg[headerLen:])
	if err != nil {
		return f, false
	}
	return u.endOfRIB()
}

// longestEnd is the length of an End-of-RIB with an attribute of extended length.
const longestEnd = headerLen + 4 + 4 + 3

// Out appends a message of the server as the neighbour gets it: with this end's address in
// the place of Self.
func (a Agreement) Out(dst, msg []byte) []byte {
	if msg[18] != typeUpdate || !bytes.Contains(msg, self4[:]) {
		return append(dst, msg...)
	}
	u, err := parseUpdate(msg[headerLen:])
	if err != nil {
		return append(dst, msg...)
	}
	for i, t := range u.attrs {
		switch {
		case t.kind == attrNextHop && bytes.Equal(t.value, self4[:]):
			if !a.Local.Is4() {
				return a.outIPv4(dst, u, i)
			}
			u.attrs[i].value = a.Local.AsSlice()
		case t.kind == attrReach && len(t.value) >= 20 && t.value[3] == 16 && bytes.Equal(t.value[4:20], self6[:]):
			hop := a.Local.As16()
			u.attrs[i].value = slices.Concat(t.value[:4], hop[:], t.value[20:])
		}
	}
	return appendUpdate(dst, u.withdrawn, u.attrs, u.nlri)
}

// outIPv4 announces IPv4 prefixes with an IPv6 next hop (RFC 8950), in as many messages as
// they need; hop is the place of the attribute NEXT_HOP.
func (a Agreement) outIPv4(dst []byte, u update, hop int) []byte {
	if len(u.withdrawn) > 0 {
		dst = appendUpdate(dst, u.withdrawn, nil, nil)
	}
	nlri, _ := prefixes(u.nlri, 32)
	r := routes{family: ipv4, announced: true, hop: nextHop{addr: a.Local}, nlri: nlri}
	out, _ := r.appendTo(dst, slices.Delete(slices.Clone(u.attrs), hop, hop+1))
	return out
}
