package wire

import (
	"bytes"
	"slices"
	"testing"
)

func capBytes(code byte, value ...byte) []byte {
	return append([]byte{code, byte(len(value))}, value...)
}

// openOf is an OPEN of AS 64512 with parameters of one capability each.
func openOf(hold byte, caps ...[]byte) []byte {
	var params []byte
	for _, c := range caps {
		params = append(append(params, optCapabilities, byte(len(c))), c...)
	}
	return messageOf(typeOpen, append([]byte{4, 0xfc, 0, 0, hold, 198, 51, 100, 7, byte(len(params))}, params...))
}

var (
	mpEVPN  = capBytes(capMultiProtocol, 0, 25, 0, 70)
	mpIPv4  = capBytes(capMultiProtocol, 0, 1, 0, 1)
	mpIPv6  = capBytes(capMultiProtocol, 0, 2, 0, 1)
	mpOther = capBytes(capMultiProtocol, 0, 1, 0, 128)
	wideAS  = capBytes(capFourOctetAS, 0xfa, 0x56, 0xea, 0)
)

func TestOpen(t *testing.T) {
	ours, err := parseOpen(openOf(90, mpEVPN, mpIPv4, mpIPv6, wideAS, capBytes(capRestart, 0x40, 120, 0, 25, 70, 0)))
	if err != nil {
		t.Fatal(err)
	}
	extended := messageOf(typeOpen, slices.Concat([]byte{4, 0xfc, 0, 0, 0, 198, 51, 100, 7, 255, 255, 0, 3 + byte(len(mpEVPN)), optCapabilities, 0, byte(len(mpEVPN))}, mpEVPN))
	oneOctet := slices.Clone(extended) // RFC 9072 section 2: a receiver ignores the length octet
	oneOctet[headerLen+9] = 1
	for _, tt := range []struct {
		name     string
		in, want []byte // the server's, with a hold time of 77
		agreed   Agreement
		asn      uint32
	}{
		{"all", openOf(90, mpEVPN, wideAS, capBytes(capRefresh)), openOf77(slices.Concat(mpEVPN, wideAS, capBytes(capRefresh))), Agreement{Families: []Family{evpn}}, 4200000000},
		{"hold time 0", openOf(0, mpEVPN), openOf77(mpEVPN), Agreement{Families: []Family{evpn}, Untimed: true}, 64512},
		{"no capability", openOf(90), openOf77(nil), Agreement{Families: []Family{ipv4}}, 64512},
		{"families of others alone", openOf(90, mpOther, capBytes(capMultiProtocol, 0, 1, 0, 4)), openOf77(mpOther), Agreement{}, 64512},
		{"a family of a wrong length alone", openOf(90, capBytes(capMultiProtocol, 1)), openOf77(nil), Agreement{Families: []Family{ipv4}}, 64512},
		{"what is not known or wrong", openOf(90, capBytes(99, 1, 2), capBytes(capFourOctetAS, 1), capBytes(69, 0, 25, 70, 3), mpOther, mpIPv6, capBytes(capMultiProtocol, 1)),
			openOf77(mpIPv6), Agreement{Families: []Family{ipv6}}, 64512},
		{"twice", openOf(90, mpEVPN, mpEVPN, mpIPv6), openOf77(slices.Concat(mpEVPN, mpIPv6)), Agreement{Families: []Family{evpn, ipv6}}, 64512},
		{"graceful restart", openOf(90, mpEVPN, capBytes(capRestart, 0xc0, 120, 0, 25, 70, 0x80, 0, 1, 128, 0x80)),
			openOf77(slices.Concat(mpEVPN, capBytes(capRestart, 0xc0, 120, 0, 25, 70, 0x80))), Agreement{Families: []Family{evpn}, Restart: true, Notices: true}, 64512},
		{"extended length, another length octet", oneOctet, openOf77(mpEVPN), Agreement{Families: []Family{evpn}, Untimed: true}, 64512},
		{"extended length", extended, openOf77(mpEVPN), Agreement{Families: []Family{evpn}, Untimed: true}, 64512},
	} {
		o, err := parseOpen(tt.in)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		got := agree(ours, o)
		if msg := o.message(tt.in, 77); !bytes.Equal(msg, tt.want) || o.asn != tt.asn || !slices.Equal(got.Families, tt.agreed.Families) ||
			got.Restart != tt.agreed.Restart || got.Notices != tt.agreed.Notices || got.Untimed != tt.agreed.Untimed {
			t.Errorf("%s: AS %d, %+v\n got %x\nwant %x", tt.name, o.asn, got, msg, tt.want)
		}
	}
	for name, in := range map[string][]byte{
		"cut off":                     messageOf(typeOpen, []byte{4, 0xfc, 0, 0, 90, 198, 51, 100, 7, 4, 2, 9, 1, 0}),
		"more than it says":           messageOf(typeOpen, []byte{4, 0xfc, 0, 0, 90, 198, 51, 100, 7, 0, 2, 0}),
		"an unknown parameter":        messageOf(typeOpen, []byte{4, 0xfc, 0, 0, 90, 198, 51, 100, 7, 2, 1, 0}),
		"a capability cut off":        messageOf(typeOpen, []byte{4, 0xfc, 0, 0, 90, 198, 51, 100, 7, 4, 2, 2, 1, 4}),
		"half a capability":           messageOf(typeOpen, []byte{4, 0xfc, 0, 0, 90, 198, 51, 100, 7, 3, 2, 1, 1}),
		"an extended one that says 0": messageOf(typeOpen, slices.Concat([]byte{4, 0xfc, 0, 0, 90, 198, 51, 100, 7, 0, 255, 0, 3 + byte(len(mpEVPN)), optCapabilities, 0, byte(len(mpEVPN))}, mpEVPN)),
		"an extended one short":       messageOf(typeOpen, []byte{4, 0xfc, 0, 0, 90, 198, 51, 100, 7, 255, 255, 0, 1, 2}),
	} {
		if _, err := parseOpen(in); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// openOf77 is the OPEN that the server gets: one parameter, a hold time of 77.
func openOf77(caps []byte) []byte {
	if len(caps) == 0 {
		return openOf(77)
	}
	return openOf(77, caps)
}

// E5: the R and F bits, and nothing else, in this node's own OPEN.
func TestForwarding(t *testing.T) {
	in := openOf(90, mpEVPN, capBytes(capRestart, 0x40, 120, 0, 25, 70, 0, 0, 1, 1, 0), capBytes(capLongLived, 0, 25, 70, 0, 0, 14, 16))
	before := slices.Clone(in)
	for restarted, head := range map[bool]byte{true: 0xc0, false: 0x40} {
		want := openOf(90, mpEVPN, capBytes(capRestart, head, 120, 0, 25, 70, 0x80, 0, 1, 1, 0x80), capBytes(capLongLived, 0, 25, 70, 0x80, 0, 14, 16))
		if got := forwarding(in, restarted); !bytes.Equal(got, want) || !bytes.Equal(in, before) {
			t.Errorf("restarted %t: got %x\nwant %x", restarted, got, want)
		}
	}
}

// E6: what a neighbour offers of graceful restart no more has a time of zero.
func TestRestartIsTakenBack(t *testing.T) {
	tuple := func(f Family, more ...byte) []byte { return append([]byte{0, byte(f.AFI), f.SAFI}, more...) }
	restart := func(head0, head1 byte, families ...Family) []byte {
		v := []byte{head0, head1}
		for _, f := range families {
			v = append(v, tuple(f, 0x80)...)
		}
		return capBytes(capRestart, v...)
	}
	long := func(seconds byte, families ...Family) []byte {
		var v []byte
		for _, f := range families {
			v = append(v, tuple(f, 0, 0, 0, seconds)...)
		}
		return capBytes(capLongLived, v...)
	}
	full := [][]byte{restart(0x41, 120, evpn, ipv4), long(200, evpn, ipv6)}
	gone := long(0, evpn, ipv6)
	for _, tt := range []struct {
		name                 string
		before, offers, want [][]byte
	}{
		{"never offered", nil, nil, nil},
		{"offered as before", full, full, full},
		{"offered for the first time", nil, full, full},
		{"no graceful restart", full[:1], nil, [][]byte{capBytes(capRestart, 0, 0)}},
		{"neither of the two", full, nil, [][]byte{capBytes(capRestart, 0, 0), gone}},
		{"no long-lived one", full, full[:1], [][]byte{full[0], gone}},
		{"a long-lived one alone", full, full[1:], [][]byte{capBytes(capRestart, 0, 0), gone}},
		{"not of one family", full, [][]byte{restart(0x41, 120, ipv4), full[1]}, [][]byte{full[1], restart(0x40, 0, ipv4)}},
		{"long-lived not of one family", full, [][]byte{full[0], long(200, ipv6)}, [][]byte{full[0], capBytes(capLongLived, slices.Concat(tuple(ipv6, 0, 0, 0, 200), tuple(evpn, 0, 0, 0, 0))...)}},
	} {
		p := &peer{}
		var got []byte
		for _, caps := range [][][]byte{tt.before, tt.offers} {
			o, err := parseOpen(openOf(90, append([][]byte{mpEVPN}, caps...)...))
			if err != nil {
				t.Fatal(err)
			}
			p.restartCapabilities(&o)
			got = o.message(openOf(90), 77)
		}
		if want := openOf77(slices.Concat(append([][]byte{mpEVPN}, tt.want...)...)); !bytes.Equal(got, want) {
			t.Errorf("%s\n got %x\nwant %x", tt.name, got, want)
		}
	}
}
