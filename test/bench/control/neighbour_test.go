package control

import (
	"context"
	"encoding/hex"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nlri4 and nlri6 are Type-5 routes of VNI 1001 (0x3e9), and short is one that ends too soon.
const (
	nlri4 = "0522" + "0001ac1e00020001" + "00000000000000000000" + "00000000" + "20" + "0a0a000b" + "00000000" + "0003e9"
	nlri6 = "053a" + "0001ac1e00020001" + "00000000000000000000" + "00000000" + "80" +
		"fd00001000000000000000000000000b" + "00000000000000000000000000000000" + "0003e9"
	reachHead = "001946" + "04ac1e0002" + "00"
)

func bytesOf(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// updateOf is the body of an UPDATE with one attribute.
func updateOf(code byte, value []byte) []byte {
	n := len(value)
	attribute := append([]byte{0x90, code, byte(n >> 8), byte(n)}, value...)
	return append([]byte{0, 0, byte(len(attribute) >> 8), byte(len(attribute))}, attribute...)
}

func TestUpdate(t *testing.T) {
	want := []string{"1001 10.10.0.11/32", "1001 fd00:10::b/128"}
	for _, code := range []byte{attrMPReach, attrMPUnreach} {
		value := bytesOf(t, map[byte]string{attrMPReach: reachHead, attrMPUnreach: "001946"}[code]+nlri4+nlri6)
		reach, unreach, err := update(updateOf(code, value))
		if err != nil {
			t.Fatal(err)
		}
		list, other := reach, unreach
		if code == attrMPUnreach {
			list, other = unreach, reach
		}
		var got []string
		for _, a := range list {
			got = append(got, intent.NewRouteKey(a.vni, a.prefix).String())
		}
		if !slices.Equal(got, want) || len(other) != 0 {
			t.Errorf("attribute %d: %v and %v", code, got, other)
		}
		for n := range value {
			_, _, _ = update(updateOf(code, value[:n])) // it does not panic
		}
	}
	if _, _, err := update(endOfRIB); err != nil {
		t.Error(err)
	}
}

// TestSession has a neighbour take one session, its routes, and its end.
func TestSession(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := newNeighbour(listen, 64512, netip.MustParseAddr("192.0.2.1"))
	defer n.stop()
	c, err := net.Dial("tcp", listen.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, message := range [][]byte{
		open(64512, holdTime, netip.MustParseAddr("192.0.2.2")), frame(messageKeepalive, nil),
		frame(messageUpdate, updateOf(attrMPReach, bytesOf(t, reachHead+nlri4+nlri6))),
	} {
		if _, err := c.Write(message); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := n.awaitSession(ctx); err != nil {
		t.Fatal(err)
	}
	keys := []intent.RouteKey{intent.NewHostKey(1001, netip.MustParseAddr("10.10.0.11")), intent.NewHostKey(1001, netip.MustParseAddr("fd00:10::b"))}
	if _, err := n.awaitAll(ctx, keys); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(frame(messageUpdate, updateOf(attrMPUnreach, bytesOf(t, "001946"+strings.Replace(nlri4, "0003e9", "000000", 1))))); err != nil {
		t.Fatal(err)
	}
	if err := n.awaitGone(ctx, func(k intent.RouteKey) bool { return k == keys[0] }); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if err := n.awaitEnd(ctx); err != nil {
		t.Fatal(err)
	}
	if err := n.awaitGone(ctx, func(intent.RouteKey) bool { return true }); err != nil {
		t.Fatal(err)
	}
}
