package identity

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"testing"
	"time"
)

func TestAddresses(t *testing.T) {
	lla := netip.MustParseAddr("fe80::f816:3eff:fe00:5")
	for n, want := range map[Number][2]string{
		1:   {"100.64.0.1", "fd6d::1:f816:3eff:fe00:5"},
		300: {"100.64.1.44", "fd6d::12c:f816:3eff:fe00:5"},
		Max: {"100.127.255.254", "fd6d:0:3f:fffe:f816:3eff:fe00:5"},
	} {
		four, six := Address4(n), Address6(n, lla)
		if four.String() != want[0] || six.String() != want[1] {
			t.Errorf("%d: %s %s, want %v", n, four, six, want)
		}
		if got, guest, ok := Parse(four); got != n || guest.IsValid() || !ok {
			t.Errorf("%s: %d %s %t", four, got, guest, ok)
		}
		if got, guest, ok := Parse(six); got != n || guest != lla || !ok {
			t.Errorf("%s: %d %s %t", six, got, guest, ok)
		}
	}
	if n, _, ok := Parse(netip.MustParseAddr("::ffff:100.64.0.1")); n != 1 || !ok {
		t.Errorf("IPv4-mapped: %d %t", n, ok)
	}
	for _, a := range []string{"100.64.0.0", "100.127.255.255", "100.128.0.1", "10.0.0.5", "fd6d::5", "fd6d:1::1", "fd6d:0:40:0::1", "fe80::1"} {
		if n, _, ok := Parse(netip.MustParseAddr(a)); ok {
			t.Errorf("%s is the number %d", a, n)
		}
	}
	if _, _, ok := Parse(netip.Addr{}); ok {
		t.Error("no address has a number")
	}
}

// A number that was given back is nobody's for a while, and the last one to come again.
func TestPool(t *testing.T) {
	p := NewPool(5, 3)
	now := time.Unix(1000, 0)
	if err := errors.Join(p.Adopt(4), p.Adopt(1)); err != nil {
		t.Fatal(err)
	}
	for _, n := range []Number{0, 4, 6} {
		if p.Adopt(n) == nil {
			t.Errorf("%d was adopted", n)
		}
	}
	take := func() string {
		n, err := p.Take(now)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(n)
	}
	if got := []string{take(), take(), take(), take()}; !reflect.DeepEqual(got, []string{"5", "2", "3", ErrNone.Error()}) {
		t.Errorf("taken: %v", got)
	}
	p.Give(5, now)
	p.Give(5, now)
	now = now.Add(time.Minute)
	p.Give(2, now)
	if got := take(); got != ErrNone.Error() {
		t.Errorf("a number that rests: %s", got)
	}
	now = now.Add(time.Minute)
	if got := []string{take(), take()}; !reflect.DeepEqual(got, []string{"5", ErrNone.Error()}) {
		t.Errorf("after its rest: %v", got)
	}
	now = now.Add(time.Minute)
	if got := take(); got != "2" {
		t.Errorf("after the other's: %s", got)
	}
	if n, err := NewPool(Max, Max).Take(now); n != 1 || err != nil {
		t.Errorf("behind the last one: %d %v", n, err)
	}
}
