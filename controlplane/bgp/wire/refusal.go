package wire

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// Refusal is why no path of an announcement is used. The announcement has replaced the neighbour's
// earlier one of the same routes all the same (RFC 4271 section 9).
type Refusal uint8

// The refusals, the strongest last: one UPDATE has one.
const (
	// BadNextHop: there is no next hop, or NEXT_HOP is no address of a router.
	BadNextHop Refusal = 1 + iota
	// OwnCluster: this node's router ID is in the CLUSTER_LIST (RFC 4456 section 8).
	OwnCluster
	// OwnOriginator: ORIGINATOR_ID is this node's router ID (RFC 4456 section 8).
	OwnOriginator
	// OwnAS: this node's AS is in the AS_PATH (RFC 4271 section 9.1.2).
	OwnAS
	// Malformed: an attribute is missing or cannot be read, so that the routes count as withdrawn
	// (RFC 7606 section 2).
	Malformed
)

// NoteType is the type of the attribute with a Note, of those that IANA has reserved. A neighbour's
// attribute of the type is left out as any other that Sluice does not read.
const NoteType = 255

// Note is what the server is told of an announcement beside its attributes, and hands on with it.
type Note struct {
	// Why is 0 for routes that are not refused. The server has no more of refused ones than the
	// routes, the next hop and the extended communities, and takes them as any others: they replace,
	// count for the neighbour's limit, and go with the session.
	Why Refusal
	// LinkLocal is the next hop's second address (RFC 2545 section 3), which the server drops.
	LinkLocal netip.Addr
}

// ReadNote reads the value of an attribute of NoteType.
func ReadNote(b []byte) (n Note) {
	if len(b) > 0 {
		n.Why = Refusal(b[0])
		n.LinkLocal, _ = netip.AddrFromSlice(b[1:])
	}
	return n
}

// attributes are the attribute, or none where there is nothing to tell.
func (n Note) attributes() []attribute {
	if n == (Note{}) {
		return nil
	}
	return []attribute{{flags: flagOptional, kind: NoteType, value: append([]byte{byte(n.Why)}, n.LinkLocal.AsSlice()...)}}
}

// refuse notes why all routes of the UPDATE are refused.
func (u *update) refuse(why Refusal) { u.why = max(u.why, why) }

// form is what an attribute has to be like: its Optional and Transitive bits (RFC 4271 section 5,
// RFC 7606 section 3 c), and the length of its value.
type form struct {
	flags byte
	size  int  // 0: any
	many  bool // the value is one or more of that size
}

var forms = map[byte]form{
	attrOrigin: {flags: flagTransitive, size: 1}, attrPath: {flags: flagTransitive}, attrNextHop: {flags: flagTransitive, size: 4},
	attrMED: {flags: flagOptional, size: 4}, attrLocalPref: {flags: flagTransitive, size: 4},
	attrCommunity: {flags: flagOptional | flagTransitive, size: 4, many: true}, attrOriginator: {flags: flagOptional, size: 4},
	attrCluster: {flags: flagOptional, size: 4, many: true}, attrReach: {flags: flagOptional}, attrUnreach: {flags: flagOptional},
	attrCommunities: {flags: flagOptional | flagTransitive, size: 8, many: true},
	attrPath4:       {flags: flagOptional | flagTransitive},
}

func (f form) fits(t attribute) bool {
	n := len(t.value)
	return t.flags&(flagOptional|flagTransitive) == f.flags && (f.size == 0 || n == f.size || f.many && n > 0 && n%f.size == 0)
}

// ignored tells whether an attribute is left out whatever it says. Nobody here reads aggregates. The
// others mean something in a session within an AS alone (RFC 7606 sections 7.5, 7.9 and 7.10), or come
// from a neighbour that knows AS numbers of two octets alone (RFC 6793 section 4.1).
func (a Agreement) ignored(kind byte) bool {
	switch kind {
	case attrAtomicAggregate, attrAggregator4:
		return true
	case attrLocalPref, attrOriginator, attrCluster:
		return a.External
	case attrPath4:
		return !a.Narrow
	}
	return false
}

// read takes in an attribute without routes. kept: the server gets it, too.
func (u *update) read(a Agreement, t attribute) (kept bool) {
	fits := forms[t.kind].fits(t)
	switch {
	case t.kind == attrNextHop:
		if fits { // else there is none; beside MP_REACH_NLRI alone nobody looks (RFC 4760 section 3)
			u.hop = nextHop{addr: netip.AddrFrom4([4]byte(t.value))}
		}
		return false
	case t.kind == attrPath4:
		if p, ok := parsePath(t.value, 4); ok && fits {
			u.path4 = p // else it is left out (RFC 6793 section 6)
		}
		return false
	case !fits:
		u.refuse(Malformed)
		return false
	}
	number := func(at int) uint32 { return binary.BigEndian.Uint32(t.value[at:]) }
	switch t.kind {
	case attrOrigin:
		if u.origin = true; t.value[0] > 2 {
			u.refuse(Malformed)
		}
	case attrOriginator:
		if number(0) == a.ID {
			u.refuse(OwnOriginator)
		}
	case attrCluster:
		for at := 0; at < len(t.value); at += 4 {
			if number(at) == a.ID {
				u.refuse(OwnCluster)
			}
		}
	}
	return true
}

// readPath takes in the AS_PATH, and gives it AS numbers of four octets. A setting that allows this
// node's own AS some times, as routers have it, belongs here.
func (u *update) readPath(a Agreement) {
	i := slices.IndexFunc(u.attrs, func(t attribute) bool { return t.kind == attrPath })
	if i < 0 {
		u.refuse(Malformed)
		return
	}
	size := 4
	if a.Narrow {
		size = 2
	}
	p, ok := parsePath(u.attrs[i].value, size)
	if !u.aggregated {
		p = p.merge(u.path4)
	}
	switch {
	case !ok || a.External && slices.ContainsFunc(p, segment.confederation): // RFC 5065 section 5
		u.refuse(Malformed)
	case p.has(a.AS):
		u.refuse(OwnAS)
	}
	u.attrs[i].value = p.bytes()
}

// announce appends the routes of an UPDATE for the server, with a Note where they are refused.
func (u *update) announce(dst []byte, a Agreement, r routes) []byte {
	why := u.why
	if !r.hop.addr.IsValid() || r.field && !a.routable(r.hop.addr) {
		why = max(why, BadNextHop)
	}
	if why == 0 {
		note := Note{LinkLocal: r.hop.linkLocal}
		if out, ok := r.appendTo(dst, append(slices.Clone(u.attrs), note.attributes()...)); ok {
			return out
		}
		why = Malformed // its attributes leave no room for a route
	}
	if why >= OwnCluster && why <= OwnAS && slices.Contains(a.VTEPs, r.hop.addr) {
		// A reflector returns this node's own route. That is no news, and there may be as many of them
		// as this node has routes.
		r.announced = false
		return appendUpdate(dst, nil, []attribute{r.attribute(r.nlri)}, nil)
	}
	r.field = false
	bare := append([]attribute{
		{flagTransitive, attrOrigin, []byte{0}}, {flags: flagTransitive, kind: attrPath},
		// The lowest: a route of this node with the same NLRI stays the best, which alone is announced.
		{flagTransitive, attrLocalPref, make([]byte, 4)},
	}, Note{Why: why}.attributes()...)
	for _, t := range u.attrs {
		if t.kind == attrCommunities {
			if out, ok := r.appendTo(dst, append(slices.Clone(bare), t)); ok {
				return out
			}
		}
	}
	out, _ := r.appendTo(dst, bare)
	return out
}
