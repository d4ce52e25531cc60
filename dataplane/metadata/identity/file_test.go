package identity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

func mac(last byte) intent.MAC { return intent.MAC{0xfa, 0x16, 0x3e, 0, 0, last} }

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

var (
	red = Port{Name: "p-red", Instance: "inst-red1", Project: "red", Network: "net-red",
		Numbers4: map[Number]netip.Addr{7: addr("10.0.0.5"), 9: addr("10.0.1.5"), 10: addr("10.0.0.5")},
		Numbers6: map[Number]intent.MAC{7: mac(5), 11: mac(6)}}
	blue = Port{Name: "p-blue", Instance: "inst-blue1", Numbers4: map[Number]netip.Addr{8: addr("10.0.0.5")}, Numbers6: map[Number]intent.MAC{8: mac(5)}}
	grey = Network{Name: "net-grey", Namespace: "ovnmeta-grey", Device: "tapgrey1", IPv6: true, Members: []Member{
		{Name: "p-g1", Instance: "inst-g1", Project: "grey", Addresses: []intent.PortAddress{{MAC: mac(1), Addr: addr("10.1.0.1")}, {MAC: mac(1), Addr: addr("fd00::1")}}},
		{Name: "p-g2", Instance: "inst-g2", Addresses: []intent.PortAddress{{MAC: mac(2), Addr: addr("10.1.0.2")}, {MAC: mac(3), Addr: addr("10.1.0.2")}, {MAC: mac(1), Addr: addr("10.1.0.3")}}},
		{Name: "p-g4", Instance: "inst-g4", Addresses: []intent.PortAddress{{MAC: mac(4)}, {MAC: mac(5), Addr: addr("10.1.0.3")}, {MAC: mac(6), Addr: addr("fe80::f816:3eff:fe00:7")}}},
		{Name: "p-g7", Instance: "inst-g7", Addresses: []intent.PortAddress{{MAC: mac(7), Addr: addr("fe80::9")}}},
		{Name: "p-g8", Instance: "inst-g8", Addresses: []intent.PortAddress{{MAC: mac(0x21), Addr: addr("10.1.0.21")}}},
	}}
)

func write(t *testing.T, path string, ports []Port, networks ...Network) {
	t.Helper()
	table, err := NewTable(ports, networks)
	if err == nil {
		err = Write(path, table)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestFile(t *testing.T) {
	path := Path(t.TempDir())
	r := NewReader(path)
	if table, err := r.Table(); table != nil || err != nil {
		t.Fatalf("without a file: %v %v", table, err)
	}
	write(t, path, []Port{red, blue}, grey)
	table, err := r.Table()
	if err != nil || !reflect.DeepEqual(table.Ports(), []Port{blue, red}) || !reflect.DeepEqual(table.Networks(), []Network{grey}) {
		t.Fatalf("read: %+v %+v %v", table.Ports(), table.Networks(), err)
	}
	for a, want := range map[string]string{"100.64.0.7": "inst-red1 10.0.0.5", "100.64.0.9": "inst-red1 10.0.1.5", "100.64.0.10": "inst-red1 10.0.0.5", "100.64.0.8": "inst-blue1 10.0.0.5",
		"fd6d:0:0:8:f816:3eff:fe00:5": "inst-blue1 fe80::f816:3eff:fe00:5", "fd6d:0:0:b::1": "inst-red1 fe80::1", "100.64.0.11": "", "fd6d:0:0:9::1": "", "10.0.0.5": ""} {
		got := ""
		if p, guest, ok := table.Find(addr(a)); ok {
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
	for _, text := range unreadable {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got, err := r.Table(); err == nil || !strings.HasPrefix(err.Error(), "metadata identities: ") || got != table {
				t.Errorf("%q: %v %v", text, got, err)
			}
		}
	}
	write(t, path, []Port{blue})
	if table, err := r.Table(); err != nil || len(table.Ports()) != 1 || len(table.Networks()) != 0 {
		t.Errorf("a good file again: %v %v", table, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if table, err := r.Table(); err == nil || len(table.Ports()) != 1 {
		t.Errorf("a file that has gone: %v %v", table, err)
	}
	var nobody *Table
	if _, _, ok := nobody.Find(addr("100.64.0.7")); ok || nobody.Ports() != nil || nobody.Networks() != nil {
		t.Error("somebody is known without a table")
	}
	if _, _, ok := nobody.FindOn("net-grey", addr("10.1.0.1")); ok {
		t.Error("somebody is known on a network without a table")
	}
}

// A file is known to be another one also where it looks like the one before: it has its
// length and its time, and could have its inode.
func TestFileThatLooksTheSame(t *testing.T) {
	path := Path(t.TempDir())
	r := NewReader(path)
	at := time.Now()
	for i := range 50 {
		port := Port{Name: fmt.Sprintf("p-%03d", i), Instance: "inst"}
		for range 2 {
			write(t, path, []Port{port})
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
		table, err := r.Table()
		if err != nil || len(table.Ports()) != 1 || table.Ports()[0].Name != port.Name {
			t.Fatalf("%s was written: %+v %v", port.Name, table.Ports(), err)
		}
	}
}

// What was written before the node was rebooted counts as not there.
func TestFileOfBefore(t *testing.T) {
	path := Path(t.TempDir())
	write(t, path, []Port{red})
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	now, err := boot()
	if err != nil || now == "" || !bytes.Contains(text, []byte(now)) {
		t.Fatalf("boot %q %v of %s", now, err, text)
	}
	for _, before := range []string{"7f1c3c0c-5f0e-4b8e-9f0e-0a8f1b1f0001", ""} {
		if err := os.WriteFile(path, bytes.ReplaceAll(text, []byte(now), []byte(before)), 0o600); err != nil {
			t.Fatal(err)
		}
		if table, err := Read(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%+v %v", table, err)
		}
		r := NewReader(path)
		for range 2 {
			if table, err := r.Table(); table != nil || err != nil {
				t.Errorf("%+v %v", table, err)
			}
		}
		write(t, path, []Port{blue})
		if table, err := r.Table(); err != nil || len(table.Ports()) != 1 {
			t.Errorf("written anew: %+v %v", table, err)
		}
	}
}

var unreadable = []string{"", "{", `{"version": 2, "ports": []}`,
	`{"version": 1, "ports": [{"port": "a", "numbers6": {"1": "02:00:00:00:00:01"}}, {"port": "b", "numbers6": {"1": "02:00:00:00:00:02"}}]}`,
	`{"version": 1, "ports": [{"port": "a", "numbers4": {"1": "10.0.0.1"}}, {"port": "b", "numbers4": {"1": "10.0.0.1"}}]}`,
	`{"version": 1, "ports": [{"port": "a", "numbers4": {"0": "10.0.0.1"}}]}`,
	`{"version": 1, "ports": [{"port": "a", "numbers6": {"4194303": "02:00:00:00:00:01"}}]}`,
	`{"version": 1, "ports": [{"port": "a", "numbers4": {"1": "fd00::1"}}]}`,
	`{"version": 1, "networks": [{"namespace": "n", "device": "d"}]}`,
	`{"version": 1, "networks": [{"network": "a", "namespace": "../b", "device": "d"}]}`,
	`{"version": 1, "networks": [{"network": "a", "namespace": "..", "device": "d"}]}`,
	`{"version": 1, "networks": [{"network": "a", "namespace": "n", "device": "a/b"}]}`,
	`{"version": 1, "networks": [{"network": "a", "namespace": "n", "device": "d"}, {"network": "a", "namespace": "m", "device": "d"}]}`,
	`{"version": 1, "networks": [{"network": "a", "namespace": "n", "device": "d"}, {"network": "b", "namespace": "n", "device": "d"}]}`,
}

// Who asks in a namespace is exactly one port, or nobody.
func TestFindOn(t *testing.T) {
	tapped := []Port{
		{Name: "p-t", Instance: "inst-t", Network: "net-grey", Row: &Row{Tap: "tap", IfIndex: 1, Addresses: []intent.PortAddress{
			{MAC: mac(0x20), Addr: addr("10.1.0.20")}, {MAC: mac(0x21), Addr: addr("10.1.0.21")}, {MAC: mac(0x22)}, {MAC: mac(0x23), Addr: addr("fe80::23")}}}},
		{Name: "p-u", Instance: "inst-u", Network: "net-third", Row: &Row{Tap: "tap", IfIndex: 2, Addresses: []intent.PortAddress{{MAC: mac(1), Addr: addr("10.1.0.1")}}}},
	}
	table, err := NewTable(tapped, []Network{grey, {Name: "net-other", Namespace: "ovnmeta-other", Device: "tap1", Members: []Member{{Name: "p-o", Instance: "inst-o", Addresses: []intent.PortAddress{{MAC: mac(1), Addr: addr("10.1.0.1")}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ network, from, want string }{
		{"net-grey", "10.1.0.1", "inst-g1 10.1.0.1"},
		{"net-grey", "::ffff:10.1.0.1", "inst-g1 10.1.0.1"},
		{"net-grey", "fd00::1", ""},                  // no request comes from there
		{"net-grey", "10.1.0.2", "inst-g2 10.1.0.2"}, // by both of its MAC addresses
		{"net-grey", "10.1.0.3", ""},                 // two ports have it
		{"net-grey", "10.1.0.9", ""},
		{"net-grey", "fe80::f816:3eff:fe00:1", ""}, // two ports have the MAC address
		{"net-grey", "fe80::f816:3eff:fe00:2%tapgrey1", "inst-g2 fe80::f816:3eff:fe00:2"},
		{"net-grey", "fe80::f816:3eff:fe00:4", "inst-g4 fe80::f816:3eff:fe00:4"},
		{"net-grey", "fe80::f816:3eff:fe00:7", ""}, // one port's by address, another's by MAC
		{"net-grey", "fe80::9", "inst-g7 fe80::9"},
		// Of a port that is served from its tap: by itself, and where a member has it, too.
		{"net-grey", "10.1.0.20", ""},
		{"net-grey", "10.1.0.21", ""},
		{"net-grey", "fe80::f816:3eff:fe00:20", ""},
		{"net-grey", "fe80::f816:3eff:fe00:21", ""},
		{"net-grey", "fe80::f816:3eff:fe00:22", ""},
		{"net-grey", "fe80::23", ""},
		{"net-grey", "fe80::1", ""},
		{"net-other", "10.1.0.1", "inst-o 10.1.0.1"},
		{"net-other", "fe80::f816:3eff:fe00:1", "inst-o fe80::f816:3eff:fe00:1"},
		{"net-other", "10.1.0.2", ""},
		{"net-none", "10.1.0.1", ""},
	} {
		got := ""
		if p, guest, ok := table.FindOn(tc.network, addr(tc.from)); ok {
			got = p.Instance + " " + guest.String()
			if p.Network != tc.network {
				t.Errorf("%s on %s is on %s", tc.from, tc.network, p.Network)
			}
		}
		if got != tc.want {
			t.Errorf("%s on %s is %q, want %q", tc.from, tc.network, got, tc.want)
		}
	}
	if _, _, ok := table.FindOn("net-grey", netip.Addr{}); ok {
		t.Error("no address is somebody's")
	}
}

// Whatever is read is written as the same again, and nothing is found twice.
func FuzzParse(f *testing.F) {
	table, err := NewTable([]Port{red, blue}, []Network{grey})
	if err != nil {
		f.Fatal(err)
	}
	text, err := json.Marshal(document{Version: version, Ports: table.Ports(), Networks: table.Networks()})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text, []byte{10, 1, 0, 1})
	for _, bad := range unreadable {
		f.Add([]byte(bad), bytes.Repeat([]byte{0xfe}, 16))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text, from []byte) {
		one, _, err := parse(text)
		if err != nil {
			return
		}
		path := filepath.Join(dir, "f")
		if err := Write(path, one); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		two, err := Read(path)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		a, _ := netip.AddrFromSlice(from)
		p, guest, ok := one.Find(a)
		p2, guest2, ok2 := two.Find(a)
		if ok != ok2 || guest != guest2 || p.Name != p2.Name {
			t.Errorf("%s: %v %v %t, and then %v %v %t", a, p, guest, ok, p2, guest2, ok2)
		}
		for _, n := range one.Networks() {
			p, _, ok := one.FindOn(n.Name, a)
			p2, _, ok2 := two.FindOn(n.Name, a)
			if ok != ok2 || p.Name != p2.Name {
				t.Errorf("%s on %s: %v %t, and then %v %t", a, n.Name, p, ok, p2, ok2)
			}
		}
	})
}

// On a file system that has no more room, who has gone goes out of the file all the same.
func TestFileWithoutRoom(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	path := Path(dir)
	write := func(ports ...Port) error {
		t.Helper()
		table, err := NewTable(ports, nil)
		if err != nil {
			t.Fatal(err)
		}
		return Write(path, table)
	}
	if err := write(red, blue); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if err := write(blue); err != nil {
		t.Fatal(err)
	}
	table, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if ports := table.Ports(); len(ports) != 1 || ports[0].Name != blue.Name {
		t.Errorf("the file has %+v", ports)
	}
}
