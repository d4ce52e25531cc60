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
}

// agree reads both ends' OPENs.
func agree(ours, theirs open) Agreement {
	a := Agreement{
		Restart: ours.restart && theirs.restart, Untimed: theirs.hold == 0,
		Notices: ours.restart && theirs.restart && ours.notices && theirs.notices,
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
	// Ignored: it could not be read. A KEEPALIVE takes its place.
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

// update rewrites the body of an UPDATE. It appends messages of the type, none if the
// outcome is another one than Passed.
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
	} else if !prefixes(u.withdrawn, 32) || !prefixes(u.nlri, 32) {
		return dst, Passed, fault(codeUpdate, subNetworkField, nil, "an UPDATE with a wrong IPv4 prefix")
	}
	if err := u.keep(a); err != nil {
		return dst, Passed, err
	}
	if u.unread {
		return dst, Ignored, nil
	}
	if len(u.nlri) > 0 && !a.Loopback && u.nextHopHere() {
		u.withdrawn, u.nlri = append(slices.Clone(u.withdrawn), u.nlri...), nil
	}
	if !u.broken && (u.reach != nil || len(u.nlri) > 0) {
		return appendUpdate(dst, u.withdrawn, u.attrs, u.nlri), Passed, nil
	}
	dst, sent := u.asWithdrawal(dst)
	switch {
	case sent:
		return dst, Passed, nil
	case u.broken && !u.multiProtocol:
		return dst, Ignored, nil // its routes are behind the cut
	}
	return dst, Idle, nil
}

// keep keeps of the attributes what the server is to read.
func (u *update) keep(a Agreement) error {
	kept := u.attrs[:0:0]
	for _, t := range u.attrs {
		switch t.kind {
		case attrReach, attrUnreach:
			u.multiProtocol = true
			r, ok, wrong := a.routes(t)
			switch {
			case wrong:
				u.unread = true
				continue
			case !ok:
				continue
			case t.kind == attrReach:
				u.reach = &r
			default:
				u.unreach = &r
			}
			t.value = r.value()
		case attrCommunities:
			t.value = opaque(t.value)
		default:
			if used(t.kind) {
				break
			}
			if t.flags&flagOptional != 0 {
				continue
			}
			return fault(codeUpdate, subUnrecognized, t.bytes(), "an UPDATE with the unknown well-known attribute %d", t.kind)
		}
		kept = append(kept, t)
	}
	u.attrs = kept
	return nil
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

// asWithdrawal appends what is left when all routes of an UPDATE count as withdrawn (RFC
// 7606 section 2), or when it announces none.
func (u update) asWithdrawal(dst []byte) (out []byte, sent bool) {
	withdrawn := append(slices.Clone(u.withdrawn), u.nlri...)
	if len(withdrawn) > 0 {
		dst, sent = appendUpdate(dst, withdrawn, nil, nil), true
	}
	for _, r := range []*routes{u.reach, u.unreach} {
		if r != nil {
			r.head = nil
			t := attribute{flags: flagOptional, kind: attrUnreach, value: r.value()}
			dst, sent = appendUpdate(dst, nil, []attribute{t}, nil), true
		}
	}
	return dst, sent
}

// nextHopHere tells whether NEXT_HOP is a loopback address.
func (u update) nextHopHere() bool {
	for _, t := range u.attrs {
		if t.kind == attrNextHop && len(t.value) == 4 && t.value[0] == 127 {
			return true
		}
	}
	return false
}

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
	local := a.Local.As16()
	head := slices.Concat([]byte{0, 1, 1, 16}, local[:], []byte{0})
	attrs := slices.Delete(slices.Clone(u.attrs), hop, hop+1)
	room := maxMessage - headerLen - 4 - 4 - len(head)
	for _, t := range attrs {
		room -= len(t.bytes())
	}
	if len(u.withdrawn) > 0 {
		dst = appendUpdate(dst, u.withdrawn, nil, nil)
	}
	for rest := u.nlri; len(rest) > 0; {
		n := 0
		for n < len(rest) {
			size := 1 + (int(rest[n])+7)/8
			if n+size > len(rest) || n > 0 && n+size > room {
				break
			}
			n += size
		}
		if n == 0 {
			break
		}
		reach := attribute{flags: flagOptional, kind: attrReach, value: slices.Concat(head, rest[:n])}
		dst = appendUpdate(dst, nil, append(slices.Clone(attrs), reach), nil)
		rest = rest[n:]
	}
	return dst
}
