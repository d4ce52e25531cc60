package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// all is a session with all families.
var all = Agreement{Families: known, Local: netip.MustParseAddr("192.0.2.1"), AS: 64512, ID: 0xc0000201, VTEPs: []netip.Addr{netip.MustParseAddr("2001:db8::1")}}

// refused is the body of what the server is given of routes that are refused.
func refused(why Refusal, f Family, hop []byte, nlri ...[]byte) []byte {
	return body(nil, nil, origin, path, attr(0x40, 5, 0, 0, 0, 0), attr(flagOptional, NoteType, byte(why)), reachOf(f, hop, nlri...))
}

func attr(flags, kind byte, value ...byte) []byte {
	return attribute{flags, kind, value}.bytes()
}

func nlriOf(kind byte, size int, fill byte) []byte {
	return append([]byte{kind, byte(size)}, bytes.Repeat([]byte{fill}, size)...)
}

func five4(fill byte) []byte { n := nlriOf(5, 34, fill); n[10] = 0; return n }
func five6(fill byte) []byte { n := nlriOf(5, 58, fill); n[10] = 0; return n }

func reachOf(f Family, hop []byte, nlri ...[]byte) []byte {
	v := binary.BigEndian.AppendUint16(nil, f.AFI)
	v = append(append(append(v, f.SAFI, byte(len(hop))), hop...), 0)
	return attr(flagOptional, attrReach, append(v, slices.Concat(nlri...)...)...)
}

func unreachOf(f Family, nlri ...[]byte) []byte {
	v := append(binary.BigEndian.AppendUint16(nil, f.AFI), f.SAFI)
	return attr(flagOptional, attrUnreach, append(v, slices.Concat(nlri...)...)...)
}

func body(withdrawn []byte, nlri []byte, attrs ...[]byte) []byte {
	list := slices.Concat(attrs...)
	b := append(binary.BigEndian.AppendUint16(nil, uint16(len(withdrawn))), withdrawn...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(list)))
	return append(append(b, list...), nlri...)
}

func messageOf(kind byte, b []byte) []byte { return finish(append(begin(nil, kind), b...), 0) }

var (
	hop4   = []byte{192, 0, 2, 7}
	hop16  = netip.MustParseAddr("2001:db8::7").AsSlice()
	own16  = all.VTEPs[0].AsSlice()
	origin = attr(0x40, 1, 0)
	path   = attr(0x40, 2)
	pref   = attr(0x40, 5, 0, 0, 0, 100)
)

// What the server is given of an UPDATE.
func TestUpdate(t *testing.T) {
	smet, imet, unknown := nlriOf(6, 40, 6), nlriOf(3, 17, 3), nlriOf(11, 0, 0)
	target := []byte{0, 2, 0xfc, 0, 0, 0, 3, 0xe9}
	bandwidth, layer2 := []byte{6, 0x10, 0, 0, 0, 0, 0, 1}, []byte{6, 4, 0, 0, 0, 0, 0, 0}
	opaque := func(c []byte) []byte { return append([]byte{0x43, 0xff}, c[2:]...) }
	p4, p6 := []byte{24, 10, 1, 2}, []byte{32, 0x20, 1, 0xd, 0xb8}
	next4 := attr(0x40, 3, hop4...)
	for _, tt := range []struct {
		name string
		in   []byte
		want [][]byte // bodies
		what Outcome
		code string // of the fault: code/subcode
	}{
		{"withdrawn with a type that is not known", body(nil, nil, unreachOf(evpn, smet, five4(1))), [][]byte{body(nil, nil, unreachOf(evpn, five4(1)))}, Passed, ""},
		{"in the other order, IPv6", body(nil, nil, unreachOf(evpn, five6(1), smet, unknown)), [][]byte{body(nil, nil, unreachOf(evpn, five6(1)))}, Passed, ""},
		{"announced with one", body(nil, nil, origin, path, pref, reachOf(evpn, hop4, smet, five4(1), imet, five6(2))),
			[][]byte{body(nil, nil, origin, path, pref, reachOf(evpn, hop4, five4(1), five6(2)))}, Passed, ""},
		{"none of Type 5 is no End-of-RIB", body(nil, nil, unreachOf(evpn, smet)), nil, Idle, ""},
		{"none of Type 5 announced", body(nil, nil, origin, path, reachOf(evpn, hop4, imet)), nil, Idle, ""},
		{"announced none, withdrawn some", body(nil, nil, origin, reachOf(evpn, hop4, imet), unreachOf(evpn, five4(3))), [][]byte{body(nil, nil, unreachOf(evpn, five4(3)))}, Passed, ""},
		{"End-of-RIB", body(nil, nil, unreachOf(evpn)), [][]byte{body(nil, nil, unreachOf(evpn))}, Passed, ""},
		{"End-of-RIB of IPv4", body(nil, nil), [][]byte{body(nil, nil)}, Passed, ""},
		{"End-of-RIB of another family", body(nil, nil, unreachOf(Family{1, 128})), nil, Idle, ""},
		{"communities", body(nil, nil, origin, path, attr(0xc0, 16, slices.Concat(bandwidth, target, layer2)...), reachOf(evpn, hop16, five4(1))),
			[][]byte{body(nil, nil, origin, path, attr(0xc0, 16, slices.Concat(opaque(bandwidth), target, opaque(layer2))...), reachOf(evpn, hop16, five4(1)))}, Passed, ""},
		{"communities of a wrong length", body(nil, nil, origin, path, attr(0xc0, 16, 1, 2, 3), reachOf(evpn, hop4, five4(1))), [][]byte{refused(Malformed, evpn, hop4, five4(1))}, Passed, ""},
		{"unknown optional attributes", body(nil, nil, origin, path, attr(0xc0, 250, make([]byte, 300)...), attr(0x80, 26, 1), attr(0x80, NoteType, 5), reachOf(evpn, hop4, five4(1))), [][]byte{body(nil, nil, origin, path, reachOf(evpn, hop4, five4(1)))}, Passed, ""},
		{"unknown well-known attribute", body(nil, nil, origin, attr(0x40, 99), reachOf(evpn, hop4, five4(1))), nil, Passed, "3/2"},
		{"the same behind routes that cannot be read", body(nil, nil, unreachOf(evpn, []byte{5, 34, 1}), attr(0x40, 99)), nil, Passed, "3/2"},
		{"another family", body(nil, nil, origin, reachOf(Family{1, 128}, make([]byte, 12), []byte{1, 2, 3})), nil, Idle, ""},
		{"unicast: what is withdrawn first", body(p4, p4, origin, path, next4, reachOf(ipv6, hop16, p6), unreachOf(evpn, five4(1))),
			[][]byte{body(p4, nil, unreachOf(evpn, five4(1))), body(nil, p4, origin, path, next4), body(nil, nil, origin, path, reachOf(ipv6, hop16, p6))}, Passed, ""},
		{"next hop of this node", body(nil, p4, origin, path, attr(0x40, 3, 127, 0, 0, 1)), [][]byte{refused(BadNextHop, ipv4, []byte{127, 0, 0, 1}, p4)}, Passed, ""},
		{"no next hop", body(nil, p4, origin, path), [][]byte{refused(BadNextHop, ipv4, make([]byte, 4), p4)}, Passed, ""},
		{"next hop 0.0.0.0", body(nil, p4, origin, path, attr(0x40, 3, 0, 0, 0, 0)), [][]byte{refused(BadNextHop, ipv4, make([]byte, 4), p4)}, Passed, ""},
		{"NEXT_HOP 0.0.0.0 beside MP_REACH", body(nil, nil, origin, path, attr(0x40, 3, 0, 0, 0, 0), reachOf(evpn, hop4, five4(1))), [][]byte{body(nil, nil, origin, path, reachOf(evpn, hop4, five4(1)))}, Passed, ""},
		{"a multicast one of a wrong length", body(nil, nil, origin, path, attr(0x40, 3, 224, 0, 0), reachOf(ipv6, hop16, p6)), [][]byte{body(nil, nil, origin, path, reachOf(ipv6, hop16, p6))}, Passed, ""},
		{"a next hop for one of two", body(nil, p4, origin, path, attr(0x40, 3, 224, 0, 0, 5), reachOf(ipv6, hop16, p6)),
			[][]byte{refused(BadNextHop, ipv4, []byte{224, 0, 0, 5}, p4), body(nil, nil, origin, path, reachOf(ipv6, hop16, p6))}, Passed, ""},
		{"a wrong IPv4 prefix", body(nil, []byte{33, 1, 2, 3, 4, 5}, origin), nil, Passed, "3/10"},
		{"a route of Type 5 too short", body(nil, nil, origin, path, reachOf(evpn, hop4, five4(1), nlriOf(5, 33, 0), five6(2))), [][]byte{refused(Malformed, evpn, hop4, five4(1), five6(2))}, Ignored, ""},
		{"a withdrawn one, too short", body(nil, nil, unreachOf(evpn, nlriOf(5, 33, 0), five6(2))), [][]byte{body(nil, nil, unreachOf(evpn, five6(2)))}, Ignored, ""},
		{"no readable one", body(nil, nil, unreachOf(evpn, []byte{5, 34, 1})), nil, Ignored, ""},
		{"routes cut off", body(nil, nil, unreachOf(evpn, five4(1), []byte{5, 34, 1})), [][]byte{body(nil, nil, unreachOf(evpn, five4(1)))}, Ignored, ""},
		{"prefixes cut off", body(nil, nil, origin, path, reachOf(ipv6, hop16, p6, []byte{64, 1})), [][]byte{refused(Malformed, ipv6, hop16, p6)}, Ignored, ""},
		{"a next hop of a wrong length", body(nil, nil, origin, path, reachOf(evpn, []byte{1, 2, 3}, five4(1))), [][]byte{refused(BadNextHop, evpn, make([]byte, 4), five4(1))}, Passed, ""},
		{"a next hop behind the attribute's end", body(nil, nil, origin, path, attr(0x80, 14, 0, 25, 70, 9, 1)), nil, Ignored, ""},
		{"an attribute cut off", append(body(p4, nil)[:6:6], slices.Concat([]byte{0, byte(len(reachOf(evpn, hop4, five4(1))) + 3)}, reachOf(evpn, hop4, five4(1)), []byte{0x40, 1, 9})...),
			[][]byte{body(p4, nil), refused(Malformed, evpn, hop4, five4(1))}, Passed, ""},
		{"routes behind the cut", body(nil, nil, origin, []byte{0x40, 2, 99}, reachOf(evpn, hop4, five4(1))), nil, Ignored, ""},
		{"withdrawn routes behind the cut", body(nil, nil, []byte{0x40, 1, 99}, unreachOf(evpn, five6(1))), nil, Ignored, ""},
		{"another family before the cut", body(nil, nil, unreachOf(Family{1, 128}, []byte{1}), []byte{0x40, 1, 9}), nil, Idle, ""},
		{"an attribute twice", body(nil, nil, origin, path, attr(0x40, 1, 2), reachOf(evpn, hop4, five4(1))), [][]byte{body(nil, nil, origin, path, reachOf(evpn, hop4, five4(1)))}, Passed, ""},
		{"aggregators, whatever they say", body(nil, nil, origin, path, attr(0xc0, 6, 1), attr(0x40, 7), attr(0x80, 18, 1), reachOf(evpn, hop4, five4(1))), [][]byte{body(nil, nil, origin, path, reachOf(evpn, hop4, five4(1)))}, Passed, ""},
		{"the partial bit, and a length of two octets", body(nil, nil, append([]byte{0x70, 1, 0, 1}, 0), path, attr(0xa0, 4, 0, 0, 0, 1), reachOf(evpn, hop4, five4(1))),
			[][]byte{body(nil, nil, origin, path, attr(0x80, 4, 0, 0, 0, 1), reachOf(evpn, hop4, five4(1)))}, Passed, ""},
		{"MP_REACH_NLRI with the transitive bit", body(nil, nil, origin, path, append([]byte{0xc0}, reachOf(evpn, hop4, five4(1))[1:]...)), [][]byte{refused(Malformed, evpn, hop4, five4(1))}, Passed, ""},
		{"own AS: the route targets stay", body(nil, nil, origin, attr(0x40, 2, 2, 1, 0, 0, 0xfc, 0), attr(0xc0, 16, target...), reachOf(evpn, hop4, five4(1))),
			[][]byte{body(nil, nil, origin, path, attr(0x40, 5, 0, 0, 0, 0), attr(0x80, NoteType, byte(OwnAS)), attr(0xc0, 16, target...), reachOf(evpn, hop4, five4(1)))}, Passed, ""},
		{"own ORIGINATOR_ID", body(nil, nil, origin, path, attr(0x80, 9, 192, 0, 2, 1), reachOf(evpn, hop4, five4(1))), [][]byte{refused(OwnOriginator, evpn, hop4, five4(1))}, Passed, ""},
		{"own CLUSTER_ID", body(nil, p4, origin, path, next4, attr(0x80, 10, 1, 1, 1, 1, 192, 0, 2, 1)), [][]byte{refused(OwnCluster, ipv4, hop4, p4)}, Passed, ""},
		{"an own route that comes back", body(nil, nil, origin, path, attr(0x80, 9, 192, 0, 2, 1), reachOf(evpn, own16, five4(1))), [][]byte{body(nil, nil, unreachOf(evpn, five4(1)))}, Passed, ""},
		{"one with this node's VTEP that does not", body(nil, nil, origin, path, reachOf(evpn, own16, five4(1))), [][]byte{body(nil, nil, origin, path, reachOf(evpn, own16, five4(1)))}, Passed, ""},
		{"routes twice", body(nil, nil, unreachOf(evpn, five4(1)), unreachOf(evpn, five4(2))), nil, Passed, "3/1"},
		{"more withdrawn than there is", []byte{0, 9, 0, 0}, nil, Passed, "3/1"},
		{"more attributes than there is", []byte{0, 0, 255, 255}, nil, Passed, "3/1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := slices.Clone(tt.in)
			got, what, err := all.update([]byte("before"), tt.in)
			if !bytes.Equal(tt.in, before) {
				t.Error("the message was changed in its place")
			}
			want := []byte("before")
			for _, b := range tt.want {
				want = append(want, messageOf(typeUpdate, b)...)
			}
			code := ""
			if f, ok := err.(*Fault); ok {
				code = string('0'+rune(f.Code)) + "/" + strings.TrimLeft(hex.EncodeToString([]byte{f.Subcode}), "0")
				if code == "3/a" {
					code = "3/10"
				}
			}
			if !bytes.Equal(got, want) || code == "" && what != tt.what || code != tt.code {
				t.Errorf("outcome %d, error %v (%s)\n got %x\nwant %x", what, err, code, got, want)
			}
		})
	}
}

// The octet of an ESI that has to be zero is no reason to leave out other routes.
func TestESI(t *testing.T) {
	n := five4(9)
	n[10] = 1
	got, ok := typeFive(slices.Concat(n, five6(2)))
	n[19] = 0
	if want := slices.Concat(n, five6(2)); !ok || !bytes.Equal(got, want) {
		t.Errorf("got %x", got)
	}
}

// Families that only one end has are left out.
func TestFamiliesOfASession(t *testing.T) {
	a := Agreement{Families: []Family{evpn}}
	got, what, err := a.update(nil, body([]byte{24, 10, 1, 2}, []byte{24, 10, 2, 2}, origin, path, reachOf(evpn, hop4, five4(1)), unreachOf(ipv6, []byte{0})))
	if want := messageOf(typeUpdate, body(nil, nil, origin, path, reachOf(evpn, hop4, five4(1)))); what != Passed || err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d, %v, %x", what, err, got)
	}
	refresh := messageOf(typeRefresh, []byte{0, 1, 0, 1})
	if got, what, _ := a.In(nil, refresh); what != Idle || !bytes.Equal(got, keepalive) {
		t.Errorf("a refresh of another family: %d, %x", what, got)
	}
}

// Self is this end's address in next hops of the session.
func TestOut(t *testing.T) {
	p4, p6 := []byte{32, 10, 1, 2, 3}, []byte{32, 0x20, 1, 0xd, 0xb8}
	v6 := netip.MustParseAddr("fe80::1%eth0")
	for _, tt := range []struct {
		name     string
		local    netip.Addr
		in, want []byte
	}{
		{"IPv4", all.Local, body(nil, p4, origin, attr(0x40, 3, self4[:]...), path), body(nil, p4, origin, attr(0x40, 3, 192, 0, 2, 1), path)},
		{"IPv6", v6, body(nil, nil, origin, reachOf(ipv6, self6[:], p6)), body(nil, nil, origin, reachOf(ipv6, v6.AsSlice(), p6))},
		{"IPv4 over IPv6", v6, body(nil, p4, origin, attr(0x40, 3, self4[:]...), path), body(nil, nil, origin, path, reachOf(ipv4, v6.AsSlice(), p4))},
		{"a next hop of its own", v6, body(nil, nil, origin, reachOf(evpn, hop4, five4(1))), body(nil, nil, origin, reachOf(evpn, hop4, five4(1)))},
	} {
		a := all
		a.Local = tt.local
		if got := a.Out(nil, messageOf(typeUpdate, tt.in)); !bytes.Equal(got, messageOf(typeUpdate, tt.want)) {
			t.Errorf("%s\n got %x\nwant %x", tt.name, got, messageOf(typeUpdate, tt.want))
		}
	}
	// What does not fit goes in several messages.
	a := all
	a.Local = v6
	many := bytes.Repeat(p4, 800)
	out := a.Out(nil, messageOf(typeUpdate, body(nil, many, origin, path, attr(0x40, 3, self4[:]...))))
	var nlri []byte
	for n := 0; len(out) > 0; n++ {
		size := int(binary.BigEndian.Uint16(out[16:]))
		if size > maxMessage || CheckHeader(out) != nil {
			t.Fatalf("message %d has %d bytes", n, size)
		}
		u, err := parseUpdate(out[headerLen:size])
		if err != nil || len(u.attrs) != 3 {
			t.Fatal(err, u.attrs)
		}
		nlri, out = append(nlri, u.attrs[2].value[21:]...), out[size:]
	}
	if !bytes.Equal(nlri, many) {
		t.Errorf("%d bytes of prefixes, want %d", len(nlri), len(many))
	}
}
