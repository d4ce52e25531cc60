package bfd

import (
	"bytes"
	"encoding/hex"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// captured is a packet of FRR 8.4.4's bfdd: Up, Poll, 300 ms, three times, an echo
// interval of 50 ms.
const captured = "20e00318" + "8d1c3a52" + "00c0ffee" + "000493e0" + "000493e0" + "0000c350"

func wire(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestParse(t *testing.T) {
	p, drop := Parse(wire(t, captured))
	want := Packet{State: Up, Poll: true, Multiplier: 3, Mine: 0x8d1c3a52, Yours: 0xc0ffee,
		MinTx: 300 * time.Millisecond, MinRx: 300 * time.Millisecond, MinEchoRx: 50 * time.Millisecond}
	if diff := cmp.Diff(want, p); diff != "" || drop != dropNone {
		t.Errorf("drop %q %s", drop, diff)
	}
	if got := hex.EncodeToString(p.Append(nil)); got != captured {
		t.Errorf("wrote %s", got)
	}
}

func TestParseDrops(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(b []byte) []byte
		want   Drop
	}{
		"empty":                  {func([]byte) []byte { return nil }, DropLength},
		"cut":                    {func(b []byte) []byte { return b[:23] }, DropLength},
		"padded":                 {func(b []byte) []byte { return append(b, 0, 0) }, dropNone},
		"length beyond the end":  {func(b []byte) []byte { b[3] = 25; return b }, DropLength},
		"length too small":       {func(b []byte) []byte { b[3] = 23; return b }, DropLength},
		"version 0":              {func(b []byte) []byte { b[0] &= 0x1f; return b }, DropVersion},
		"version 2":              {func(b []byte) []byte { b[0] = 0x40; return b }, DropVersion},
		"multiplier":             {func(b []byte) []byte { b[2] = 0; return b }, DropMultiplier},
		"multipoint":             {func(b []byte) []byte { b[1] |= bitMultipoint; return b }, DropMultipoint},
		"no discriminator":       {func(b []byte) []byte { clear(b[4:8]); return b }, DropDiscriminator},
		"up without ours":        {func(b []byte) []byte { clear(b[8:12]); return b }, DropDiscriminator},
		"down without ours":      {func(b []byte) []byte { clear(b[8:12]); b[1] = byte(Down) << 6; return b }, dropNone},
		"auth without a section": {func(b []byte) []byte { b[1] |= bitAuth; return b }, DropLength},
		"keyed SHA1": {func(b []byte) []byte {
			b[1] |= bitAuth
			b[3] = 52
			return append(b, append([]byte{4, 28}, make([]byte, 26)...)...)
		}, DropAuthentication},
	} {
		t.Run(name, func(t *testing.T) {
			b := tc.change(wire(t, captured))
			if _, drop := Parse(b); drop != tc.want {
				t.Errorf("drop %q, want %q", drop, tc.want)
			} else if drop == DropAuthentication && authType(b) != "keyed SHA1" {
				t.Errorf("type %s", authType(b))
			}
		})
	}
}

// FuzzParse: no bytes panic, what is taken comes out again as it came in, and a
// session that is given it goes on.
func FuzzParse(f *testing.F) {
	f.Add(wire(f, captured), byte(0))
	f.Add(wire(f, captured[:8]), byte(1))
	f.Add(append(wire(f, "20440534"+captured[8:]), 4, 28), byte(2))
	f.Fuzz(func(t *testing.T, b []byte, state byte) {
		p, drop := Parse(b)
		if drop == DropAuthentication {
			_ = authType(b)
		}
		if drop != dropNone {
			return
		}
		if again := p.Append(nil); !bytes.Equal(again[4:], b[4:packetLength]) || again[0] != b[0] || again[1] != b[1] {
			t.Fatalf("%x became %x", b, again)
		}
		s := NewSession(Settings{MinTx: time.Second, MinRx: time.Second, Multiplier: 3}, 7, func() float64 { return 0 }, epoch)
		s.state = State(state & 3)
		now := epoch
		for range 3 {
			reply, send := s.Receive(now, p)
			if send && reply.Poll && reply.Final {
				t.Fatal("a packet with Poll and Final")
			}
			if _, drop := Parse(reply.Append(nil)); send && drop != dropNone && reply.State != Init && reply.State != Up {
				t.Fatalf("the reply is dropped for its %s", drop)
			}
			if next := s.Next(); !next.IsZero() {
				s.Expire(next)
				if after := s.Next(); !after.IsZero() && !after.After(next) {
					t.Fatalf("nothing becomes of what is due at %s", next)
				}
				now = next
			}
		}
	})
}
