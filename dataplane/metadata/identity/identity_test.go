package identity

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
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

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "identities.json")
	r := NewReader(path)
	if table, err := r.Table(); table != nil || err != nil {
		t.Fatalf("without a file: %v %v", table, err)
	}
	red := Port{Name: "p-red", Instance: "inst-red1", Project: "red", Network: "net-red", Number6: 7, Numbers4: map[Number]netip.Addr{7: netip.MustParseAddr("10.0.0.5"), 9: netip.MustParseAddr("10.0.1.5")}}
	blue := Port{Name: "p-blue", Instance: "inst-blue1", Number6: 8, Numbers4: map[Number]netip.Addr{8: netip.MustParseAddr("10.0.0.5")}}
	write := func(ports ...Port) {
		t.Helper()
		table, err := NewTable(ports)
		if err == nil {
			err = Write(path, table)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write(red, blue)
	table, err := r.Table()
	if err != nil || !reflect.DeepEqual(table.Ports(), []Port{blue, red}) {
		t.Fatalf("read: %+v %v", table.Ports(), err)
	}
	for a, want := range map[string]string{"100.64.0.7": "inst-red1 10.0.0.5", "100.64.0.9": "inst-red1 10.0.1.5", "100.64.0.8": "inst-blue1 10.0.0.5",
		"fd6d:0:0:8:f816:3eff:fe00:5": "inst-blue1 fe80::f816:3eff:fe00:5", "100.64.0.10": "", "fd6d:0:0:9::1": "", "10.0.0.5": ""} {
		got := ""
		if p, guest, ok := table.Find(netip.MustParseAddr(a)); ok {
			got = p.Instance + " " + guest.String()
		}
		if got != want {
			t.Errorf("%s is %q, want %q", a, got, want)
		}
	}
	again, err := r.Table()
	if err != nil || again != table {
		t.Error("a file that is the same was read anew")
	}
	// What cannot be read leaves the last table.
	for _, text := range []string{"", "{", `{"version": 2, "ports": []}`, `{"version": 1, "ports": [{"port": "a", "number6": 1}, {"port": "b", "number6": 1}]}`,
		`{"version": 1, "ports": [{"port": "a", "numbers4": {"1": "10.0.0.1"}}, {"port": "b", "numbers4": {"1": "10.0.0.1"}}]}`} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got, err := r.Table(); err == nil || !strings.HasPrefix(err.Error(), "metadata identities: ") || got != table {
				t.Errorf("%q: %v %v", text, got, err)
			}
		}
	}
	write(blue)
	if table, err := r.Table(); err != nil || len(table.Ports()) != 1 {
		t.Errorf("a good file again: %v %v", table, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if table, err := r.Table(); err == nil || len(table.Ports()) != 1 {
		t.Errorf("a file that has gone: %v %v", table, err)
	}
	var nobody *Table
	if _, _, ok := nobody.Find(netip.MustParseAddr("100.64.0.7")); ok || nobody.Ports() != nil {
		t.Error("somebody is known without a table")
	}
}
