package intent

import (
	"encoding/json"
	"net/netip"
	"slices"
	"testing"
)

func TestUnderlayHops(t *testing.T) {
	a := netip.MustParseAddr
	one, two := UnderlayHop{a("192.0.2.1"), "eth1"}, UnderlayHop{a("fe80::1"), "eth2"}
	s := NewUnderlayHops(two, one, UnderlayHop{a("::ffff:192.0.2.1"), "eth1"}, UnderlayHop{a("fe80::1%eth2"), "eth2"})
	if s != NewUnderlayHops(one, two) || !slices.Equal(s.All(), []UnderlayHop{one, two}) {
		t.Errorf("%q: %v", string(s), s.All())
	}
	if s.String() != "192.0.2.1 dev eth1, fe80::1 dev eth2" || len(NewUnderlayHops().All()) != 0 {
		t.Errorf("%s", s)
	}
	var again UnderlayHops
	if b, err := s.MarshalJSON(); err != nil || string(b) != `[{"via":"192.0.2.1","device":"eth1"},{"via":"fe80::1","device":"eth2"}]` {
		t.Errorf("%s, %v", b, err)
	} else if err := json.Unmarshal(b, &again); err != nil || again != s {
		t.Errorf("read back %q, %v", string(again), err)
	}
}
