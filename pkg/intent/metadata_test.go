package intent

import (
	"encoding/json"
	"net/netip"
	"slices"
	"testing"
)

func guest(mac, addr string) PortAddress {
	m, err := ParseMAC(mac)
	if err != nil {
		panic(err)
	}
	g := PortAddress{MAC: m}
	if addr != "" {
		g.Addr = netip.MustParseAddr(addr)
	}
	return g
}

// A set of guests is the same value whatever order they came in, and gives them back.
func TestPortAddressSet(t *testing.T) {
	a, b := guest("02:00:00:00:00:01", "10.0.0.5"), guest("02:00:00:00:00:01", "2001:db8::5")
	c, d := guest("02:00:00:00:00:02", ""), guest("fa:00:00:00:00:01", "0.0.0.0")
	set := NewPortAddressSet(d, c, b, a, a, c)
	if set != NewPortAddressSet(a, b, c, d) {
		t.Error("order and repetition matter")
	}
	if got, want := set.All(), []PortAddress{a, b, c, d}; !slices.Equal(got, want) {
		t.Errorf("All gives %v, want %v", got, want)
	}
	if got, want := set.String(), "02:00:00:00:00:01 10.0.0.5, 02:00:00:00:00:01 2001:db8::5, 02:00:00:00:00:02, fa:00:00:00:00:01 0.0.0.0"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	raw, err := json.Marshal(set)
	var back []PortAddress
	if err != nil || json.Unmarshal(raw, &back) != nil || NewPortAddressSet(back...) != set {
		t.Errorf("as JSON %s, %v: %v", raw, err, back)
	}
	if NewPortAddressSet() != "" || PortAddressSet("").All() != nil {
		t.Error("the empty set is not empty")
	}
	if raw, err := json.Marshal(PortAddressSet("")); err != nil || string(raw) != "[]" {
		t.Errorf("the empty set as JSON: %s %v", raw, err)
	}
	if list := []PortAddress{d, a}; NewPortAddressSet(list...) == "" || list[0] != d {
		t.Error("the caller's list was sorted")
	}
}

func FuzzPortAddressSet(f *testing.F) {
	f.Add([]byte("\x02\x00\x00\x00\x00\x01\x0a\x00\x00\x05"), []byte{0xfe, 0x80})
	f.Fuzz(func(t *testing.T, one, other []byte) {
		var list []PortAddress
		for _, b := range [][]byte{one, other} {
			g := PortAddress{}
			n := copy(g.MAC[:], b)
			if a, ok := netip.AddrFromSlice(b[n:]); ok {
				g.Addr = a.Unmap()
			}
			list = append(list, g)
		}
		got := NewPortAddressSet(list...).All()
		slices.SortFunc(list, PortAddress.compare)
		if list = slices.Compact(list); !slices.Equal(got, list) {
			t.Errorf("%v became %v", list, got)
		}
		_ = PortAddressSet(one).String() // no bytes panic
	})
}

// sluicectl reads what sluiced says of a port.
func TestPortAddressSetIsReadBack(t *testing.T) {
	mac := MAC{0xfa, 0x16, 0x3e, 0, 0, 5}
	for _, want := range []PortAddressSet{"", NewPortAddressSet(PortAddress{MAC: mac}), NewPortAddressSet(PortAddress{mac, netip.MustParseAddr("10.30.0.5")}, PortAddress{mac, netip.MustParseAddr("fd00:30::5")}, PortAddress{MAC: mac})} {
		b, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got PortAddressSet
		if err := json.Unmarshal(b, &got); err != nil || got != want {
			t.Errorf("%s is read back as %q, %v; want %q", b, got, err, want)
		}
	}
}

func TestPrefixSet(t *testing.T) {
	a, b := netip.MustParsePrefix("10.0.0.2/24"), netip.MustParsePrefix("10.0.1.2/24")
	set := NewPrefixSet(b, a, b)
	if set != NewPrefixSet(a, b) || !slices.Equal(set.All(), []netip.Prefix{a, b}) || set != "10.0.0.2/24 10.0.1.2/24" {
		t.Errorf("%q", set)
	}
	if NewPrefixSet() != "" || PrefixSet("x 10.0.0.2/24").All()[0] != a {
		t.Error("what is no prefix counts")
	}
}
