package bgp

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
)

// generator makes well-formed UPDATEs of EVPN routes from the RFCs alone: no encoder of the
// code under test is in it. It knows what a receiver has in the end.
type generator struct {
	*rand.Rand
	// has are the Type-5 routes that are announced, by "RD prefix".
	has map[string]modelRoute
	// first is the lowest number of a route distinguisher.
	first uint16
}

// modelRoute is a route of Type 5, and what a receiver has of it.
type modelRoute struct {
	nlri []byte
	seen seenRoute
}

// seenRoute is what a speaker has of a route: the parts that lead to traffic.
type seenRoute struct {
	vni          uint32
	hop, mac, rt string // rt: route targets in order, with a space between them
}

// maxBody is what of a message is left for its body (RFC 4271 section 4.1).
const maxBody = 4096 - 19

// distinguisher is one of three types (RFC 4364 section 4.2).
func (g generator) distinguisher() (wire []byte, text string) {
	n := g.first + uint16(g.IntN(4))
	switch g.IntN(3) {
	case 0:
		return binary.BigEndian.AppendUint32([]byte{0, 0, 0xfc, 0}, uint32(n)), fmt.Sprintf("64512:%d", n)
	case 1:
		return binary.BigEndian.AppendUint16([]byte{0, 1, 192, 0, 2, 7}, n), fmt.Sprintf("192.0.2.7:%d", n)
	}
	return binary.BigEndian.AppendUint16([]byte{0, 2, 0xfa, 0x56, 0xea, 0x01}, n), fmt.Sprintf("4200000001:%d", n)
}

// five is a route of Type 5 (RFC 9136 section 3.1) and its name.
func (g generator) five() (nlri []byte, name string) {
	rd, text := g.distinguisher()
	bits, addr, size := 8+g.IntN(17), []byte{10, byte(g.IntN(4)), byte(g.IntN(4)), 0}, 4
	if g.IntN(2) == 0 {
		bits, addr, size = 32+g.IntN(33), append([]byte{0x20, 1, 0xd, 0xb8, 0, 0, 0, byte(g.IntN(8))}, make([]byte, 8)...), 16
	}
	a, _ := netip.AddrFromSlice(addr)
	prefix := netip.PrefixFrom(a, bits).Masked()
	b := append(slices.Clone(rd), make([]byte, 10+4)...) // no ESI; Ethernet tag 0
	b = append(append(b, byte(bits)), prefix.Addr().AsSlice()...)
	gateway := make([]byte, size)
	if g.IntN(8) == 0 { // an overlay index, which Sluice refuses and lists
		gateway[size-1], gateway[0] = 9, addr[0]
	}
	b = append(append(b, gateway...), g.bytes(3)...)
	return append([]byte{5, byte(len(b))}, b...), text + " " + prefix.String()
}

// other is a route of any type but 5, of its RFC's form (RFC 7432 section 7, RFC 9251 section
// 9, RFC 9572 section 3).
func (g generator) other() []byte {
	rd, _ := g.distinguisher()
	esi, tag := g.bytes(10), g.bytes(4)
	esi[0] = 0
	sized := func() []byte { // an address with its length in bits
		n := []int{4, 16}[g.IntN(2)]
		return append([]byte{byte(8 * n)}, g.bytes(n)...)
	}
	kinds := []byte{1, 2, 3, 4, 6, 7, 8, 9, 10, 11}
	kind, b := kinds[g.IntN(len(kinds))], slices.Clone(rd)
	switch kind {
	case 1:
		b = slices.Concat(b, esi, tag, g.bytes(3))
	case 2:
		b = slices.Concat(b, esi, tag, []byte{48}, g.bytes(6))
		switch g.IntN(3) {
		case 0:
			b = append(b, 0)
		case 1:
			b = slices.Concat(b, []byte{32}, g.bytes(4))
		default:
			b = slices.Concat(b, []byte{128}, g.bytes(16))
		}
		b = append(b, g.bytes(3*(1+g.IntN(2)))...)
	case 3: // FRR 8.4.4 ends the session for an IPv6 originator, of Type 4 too
		b = slices.Concat(b, tag, []byte{32}, g.bytes(4))
	case 4:
		b = slices.Concat(b, esi, []byte{32}, g.bytes(4))
	case 6:
		b = slices.Concat(b, tag, sized(), sized(), sized(), []byte{1})
	case 7:
		b = slices.Concat(b, esi, tag, sized(), sized(), sized(), []byte{1})
	case 8:
		b = slices.Concat(b, esi, tag, sized(), sized(), sized(), make([]byte, 4), []byte{9, 1})
	case 9:
		b = slices.Concat(b, tag, g.bytes(8))
	case 10:
		b = slices.Concat(b, tag, sized(), sized(), sized())
	case 11:
		key := slices.Concat(rd, tag, sized(), sized(), sized())
		b = slices.Concat([]byte{10, byte(len(key))}, key, sized())
	}
	return append([]byte{kind, byte(len(b))}, b...)
}

// pack shuffles routes with some of other types among them.
func (g generator) pack(fives [][]byte) []byte {
	all := slices.Clone(fives)
	for range g.IntN(4) {
		all = append(all, g.other())
	}
	g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return slices.Concat(all...)
}

// attr is a path attribute, now and then with more octets of length than it needs.
func (g generator) attr(flags, kind byte, value []byte) []byte {
	if len(value) > 255 || g.IntN(4) == 0 {
		return append(binary.BigEndian.AppendUint16([]byte{flags | 0x10, kind}, uint16(len(value))), value...)
	}
	return append([]byte{flags, kind, byte(len(value))}, value...)
}

// communities are a route target, the encapsulation, the router MAC, and others of all types
// of the registry, of those of EVPN each subtype.
func (g generator) communities() []byte {
	list := [][]byte{{0, 2, 0xfc, 0, 0, 0, 3, 0xe9}, {3, 12, 0, 0, 0, 0, 0, 8}, {6, 3, 2, 0, 0, 0, 0, 7}}
	kinds := []byte{0, 1, 2, 3, 4, 5, 7, 8, 9, 0x0a, 0x0c, 0x40, 0x41, 0x42, 0x43, 0x44, 0x47, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x90, 0xc0}
	for range g.IntN(6) {
		c := g.bytes(8)
		c[0] = kinds[g.IntN(len(kinds))]
		if g.IntN(2) == 0 {
			c[0], c[1] = 6, byte(g.IntN(0x20))
			if c[1] == 3 {
				c[1] = 4
			}
		}
		if g.IntN(4) == 0 { // another route target
			c[0], c[1] = byte(g.IntN(3)), 2
		}
		list = append(list, c)
	}
	g.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return slices.Concat(list...)
}

// theirMAC is the router MAC of all routes of a generator.
const theirMAC = "02:00:00:00:00:07"

// targetsAmong are the route targets among extended communities (RFC 4360 section 4, RFC 5668
// section 3), as people write them.
func targetsAmong(communities []byte) string {
	var out []string
	for c := communities; len(c) > 0; c = c[8:] {
		low := binary.BigEndian.Uint16(c[6:])
		switch binary.BigEndian.Uint16(c) {
		case 0x0002:
			out = append(out, fmt.Sprintf("%d:%d", binary.BigEndian.Uint16(c[2:]), binary.BigEndian.Uint32(c[4:])))
		case 0x0102:
			out = append(out, fmt.Sprintf("%s:%d", netip.AddrFrom4([4]byte(c[2:6])), low))
		case 0x0202:
			out = append(out, fmt.Sprintf("%d:%d", binary.BigEndian.Uint32(c[2:]), low))
		}
	}
	return targetList(out)
}

func targetList(targets []string) string {
	slices.Sort(targets)
	return strings.Join(slices.Compact(targets), " ")
}

// attributes are those of a route, over iBGP, but for the route.
func (g generator) attributes(communities []byte) [][]byte {
	u32 := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	path := []byte{}
	if n := g.IntN(4); n > 0 {
		path = []byte{2, byte(n)}
		for i := range n {
			path = append(path, u32(uint32(64600+i))...)
		}
	}
	out := [][]byte{g.attr(0x40, 1, []byte{byte(g.IntN(3))}), g.attr(0x40, 2, path), g.attr(0x40, 5, u32(g.Uint32())), g.attr(0xc0, 16, communities)}
	for _, more := range [][]byte{
		g.attr(0x80, 4, g.bytes(4)), g.attr(0x40, 6, nil), g.attr(0xc0, 7, append(u32(64601), 192, 0, 2, 9)), g.attr(0xc0, 8, append(u32(64601<<16|7), u32(64602<<16|8)...)),
		g.attr(0x80, 9, []byte{192, 0, 2, 99}), g.attr(0x80, 10, []byte{192, 0, 2, 98, 192, 0, 2, 97}), g.attr(0xc0, 32, g.bytes(12*(1+g.IntN(3)))),
		g.attr(0xc0, 250, g.bytes(g.IntN(400))), g.attr(0x80, 99, g.bytes(g.IntN(40))), g.attr(0xe0, 200, g.bytes(g.IntN(40))),
	} {
		if g.IntN(5) == 0 {
			out = append(out, more)
		}
	}
	return out
}

// update is the body of the next one.
func (g generator) update() []byte {
	for {
		was := maps.Clone(g.has)
		if b := g.try(); len(b) <= maxBody {
			return b
		}
		clear(g.has)
		maps.Copy(g.has, was)
	}
}

func (g generator) try() []byte {
	touched, names, news, withdrawn := map[string]bool{}, []string{}, [][]byte{}, [][]byte{}
	for range g.IntN(6) {
		if n, name := g.five(); !touched[name] {
			touched[name], names = true, append(names, name)
			news = append(news, n)
		}
	}
	for range g.IntN(4) {
		n, name := g.five() // often one that is not there
		if known := g.someRoute(); known != "" && g.IntN(4) > 0 {
			n, name = slices.Clone(g.has[known].nlri), known
			copy(n[len(n)-3:], g.bytes(3)) // the label is no part of the key
		}
		if !touched[name] {
			touched[name] = true
			delete(g.has, name)
			withdrawn = append(withdrawn, n)
		}
	}
	var attrs [][]byte
	if len(news) > 0 || g.IntN(8) == 0 {
		hop := []byte{192, 0, 2, byte(7 + g.IntN(3))}
		if g.IntN(3) == 0 {
			hop = netip.MustParseAddr("2001:db8::7").AsSlice()
		}
		value := slices.Concat([]byte{0, 25, 70, byte(len(hop))}, hop, []byte{0}, g.packSome(news))
		communities := g.communities()
		attrs = append(g.attributes(communities), g.attr(0x80, 14, value))
		a, _ := netip.AddrFromSlice(hop)
		for i, n := range news {
			label := n[len(n)-3:]
			g.has[names[i]] = modelRoute{n, seenRoute{uint32(label[0])<<16 | uint32(label[1])<<8 | uint32(label[2]), a.String(), theirMAC, targetsAmong(communities)}}
		}
	}
	if len(withdrawn) > 0 || len(attrs) == 0 {
		attrs = append(attrs, g.attr(0x80, 15, append([]byte{0, 25, 70}, g.packSome(withdrawn)...)))
	}
	g.Shuffle(len(attrs), func(i, j int) { attrs[i], attrs[j] = attrs[j], attrs[i] })
	all := slices.Concat(attrs...)
	return append(binary.BigEndian.AppendUint16([]byte{0, 0}, uint16(len(all))), all...)
}

// packSome is pack, with at least one route: without any it would be End-of-RIB.
func (g generator) packSome(fives [][]byte) []byte {
	if b := g.pack(fives); len(b) > 0 {
		return b
	}
	return g.other()
}

// someRoute is one that is announced; "": none is.
func (g generator) someRoute() string {
	if len(g.has) == 0 {
		return ""
	}
	names := make([]string, 0, len(g.has))
	for k := range g.has {
		names = append(names, k)
	}
	slices.Sort(names)
	return names[g.IntN(len(names))]
}

func (g generator) bytes(n int) []byte { return fuzzer{Rand: g.Rand}.bytes(n) }
