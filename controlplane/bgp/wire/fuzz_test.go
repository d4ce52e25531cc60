package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/osrg/gobgp/v3/pkg/apiutil"
	"github.com/osrg/gobgp/v3/pkg/packet/bgp"
)

// server does with a message what the BGP server does; it panics where the server does.
func server(t *testing.T, external bool, msg []byte) {
	t.Helper()
	head := &bgp.BGPHeader{}
	if err := head.DecodeFromBytes(msg); err != nil || int(head.Len) != len(msg) {
		t.Fatalf("header of %x: %v", msg, err)
	}
	m, err := bgp.ParseBGPBody(head, msg[headerLen:])
	if m == nil {
		t.Fatalf("the server has no message to go on with: %v", err)
	}
	if bad, ok := errors.AsType[*bgp.MessageError](err); err != nil && !ok {
		t.Fatalf("an error of another kind: %v", err)
	} else if ok && bad.ErrorHandling == bgp.ERROR_HANDLING_TREAT_AS_WITHDRAW {
		m.Body = bgp.TreatAsWithdraw(m.Body.(*bgp.BGPUpdate))
	}
	u, ok := m.Body.(*bgp.BGPUpdate)
	if !ok {
		_, _ = json.Marshal(m)
		return
	}
	families := map[bgp.RouteFamily]bgp.BGPAddPathMode{bgp.RF_EVPN: 0, bgp.RF_IPv4_UC: 0, bgp.RF_IPv6_UC: 0}
	if _, fault := bgp.ValidateUpdateMsg(u, families, external, false, true); err != nil || fault != nil {
		t.Fatalf("the server refuses by itself what it is given: %v, %v, of %x", err, fault, msg)
	}
	_, _ = u.IsEndOfRib()
	_, _ = apiutil.MarshalPathAttributes(u.PathAttributes)
	for _, a := range u.PathAttributes {
		_ = a.String()
		switch r := a.(type) {
		case *bgp.PathAttributeMpReachNLRI:
			describe(r.Value)
		case *bgp.PathAttributeMpUnreachNLRI:
			describe(r.Value)
		}
	}
	for _, n := range append(slices.Clone(u.NLRI), u.WithdrawnRoutes...) {
		describe([]bgp.AddrPrefixInterface{n})
	}
}

func describe(list []bgp.AddrPrefixInterface) {
	for _, n := range list {
		_ = n.String()
		_, _ = n.Serialize()
		_, _ = apiutil.MarshalNLRI(n)
	}
}

// split cuts what was appended into messages.
func split(t *testing.T, b []byte) (out [][]byte) {
	t.Helper()
	for len(b) > 0 {
		if len(b) < headerLen || CheckHeader(b) != nil || int(binary.BigEndian.Uint16(b[16:])) > len(b) {
			t.Fatalf("no message: %x", b)
		}
		n := binary.BigEndian.Uint16(b[16:])
		out, b = append(out, b[:n]), b[n:]
	}
	return out
}

// checkUpdate: the server survives what it is given of an UPDATE, which is no longer than
// that, and itself when it is rewritten again.
func checkUpdate(t *testing.T, a Agreement, b []byte) {
	t.Helper()
	if len(b) > maxMessage-headerLen || len(b) < 4 {
		return
	}
	in := messageOf(typeUpdate, b)
	before := slices.Clone(in)
	out, what, err := a.In(nil, in)
	if !bytes.Equal(in, before) {
		t.Fatal("the message was changed in its place")
	}
	if _, ok := errors.AsType[*Fault](err); err != nil {
		if !ok || len(out) > 0 {
			t.Fatalf("%v, with %x", err, out)
		}
		return
	}
	messages := split(t, out)
	if what == Idle && !bytes.Equal(out, keepalive) || len(messages) == 0 || len(messages) > mostMessages {
		t.Fatalf("outcome %d: %x", what, out)
	}
	for _, m := range messages {
		server(t, a.External, m)
		wide := a
		wide.Narrow = false
		again, what, err := wide.In(nil, m)
		if err != nil || what != Passed || !bytes.Equal(again, m) && !noted(m) {
			t.Fatalf("rewritten again: %d, %v\n got %x\nwant %x", what, err, again, m)
		}
	}
}

// mostMessages is how many an UPDATE becomes: what is withdrawn, and what is announced in the NLRI
// field and in MP_REACH_NLRI, each of which may need a second one for the note.
const mostMessages = 5

// noted tells whether a message has a note, which the neighbour's messages have not.
func noted(msg []byte) bool {
	if msg[18] != typeUpdate {
		return false
	}
	u, _ := parseUpdate(msg[headerLen:])
	return slices.ContainsFunc(u.attrs, func(t attribute) bool { return t.kind == NoteType })
}

func FuzzUpdate(f *testing.F) {
	for _, b := range [][]byte{
		body(nil, nil), body(nil, nil, unreachOf(evpn)), body([]byte{8, 10}, []byte{32, 1, 2, 3, 4}, origin, path, attr(0x40, 3, hop4...)),
		body(nil, nil, origin, path, pref, attr(0xc0, 16, 0, 2, 0xfc, 0, 0, 0, 3, 0xe9, 6, 3, 2, 0, 0, 0, 0, 7), reachOf(evpn, hop4, nlriOf(6, 40, 1), five4(1), five6(2))),
		body(nil, nil, unreachOf(evpn, five4(1), nlriOf(2, 33, 2))), body(nil, nil, origin, path, reachOf(ipv6, hop16, []byte{64, 1, 2, 3, 4, 5, 6, 7, 8})),
	} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		checkUpdate(t, all, b)
		checkUpdate(t, Agreement{Families: []Family{evpn}}, b)
		checkUpdate(t, Agreement{Families: known, External: true, Narrow: true}, b)
		checkOut(t, b)
	})
}

// checkOut: what goes out is well-formed whatever the server sends.
func checkOut(t *testing.T, b []byte) {
	t.Helper()
	if len(b) > maxMessage-headerLen || len(b) < 4 {
		return
	}
	for _, m := range split(t, all.Out(nil, messageOf(typeUpdate, b))) {
		if u, err := parseUpdate(b); err == nil && !u.broken {
			if _, err := parseUpdate(m[headerLen:]); err != nil {
				t.Fatalf("%x: %v", m, err)
			}
		}
	}
}

func FuzzOpen(f *testing.F) {
	for _, m := range [][]byte{openOf(90), openOf(0, mpEVPN, wideAS, capBytes(capRestart, 0x40, 120, 0, 25, 70, 0)), openOf(3, capBytes(capNextHop, 0, 1, 0, 1, 0, 2), capBytes(capLongLived, 0, 25, 70, 0, 0, 14, 16))} {
		f.Add(m[headerLen:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 10 || len(b) > maxMessage-headerLen {
			return
		}
		msg := messageOf(typeOpen, b)
		o, err := parseOpen(msg)
		if err != nil {
			return
		}
		out := o.message(msg, 90)
		server(t, false, out)
		again, err := parseOpen(out)
		if err != nil || fmt.Sprint(again.families, again.restart, again.asn) != fmt.Sprint(o.families, o.restart, o.asn) {
			t.Fatalf("%v: %+v has become %+v", err, o, again)
		}
		if r := forwarding(msg, true); len(r) != len(msg) {
			t.Fatal("the bits change the length")
		}
	})
}

// Any stream of bytes ends with a fault or with messages that the server survives.
func FuzzStream(f *testing.F) {
	f.Add(slices.Concat(keepalive, messageOf(typeRefresh, []byte{0, 25, 0, 70}), messageOf(typeNotification, []byte{6, 2}), messageOf(typeUpdate, body(nil, nil, unreachOf(evpn, five4(1))))))
	f.Add(messageOf(77, []byte{1}))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, buf := bufio.NewReader(bytes.NewReader(b)), make([]byte, maxMessage)
		for {
			msg, err := readMessage(r, buf)
			if err != nil {
				return
			}
			out, _, err := all.In(nil, msg)
			if err != nil {
				return
			}
			for _, m := range split(t, out) {
				server(t, false, m)
			}
		}
	})
}
