package link_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

func newFacts(t *testing.T, script string) *link.Facts {
	t.Helper()
	name := namespaceName()
	run(t, "ip netns add "+name)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
	run(t, "nsenter --net=/run/netns/"+name+" sh -ec '"+script+"'")
	return link.New(netns.Named(name))
}

func namespaceName() string { return fmt.Sprintf("sllink%d", os.Getpid()) }

func namespacePath() string { return "/run/netns/" + namespaceName() }

func run(t *testing.T, command string) {
	t.Helper()
	if out, err := exec.Command("sh", "-ec", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
}

const links = `ip link set lo up; ip link add eth0 type veth peer name far; ip link set eth0 up mtu 1600; ip link set far up
	ip link add eth1 type bridge; ip link set eth1 up mtu 9000
	ip addr add 192.0.2.1/24 dev eth0; ip addr add 2001:db8::1/64 dev eth0 nodad; ip addr add 198.51.100.1/24 dev eth1; `

func TestVTEP(t *testing.T) {
	a := netip.MustParseAddr
	for _, tc := range []struct {
		name, lo, configured, encap, want string
	}{
		{"configured wins", "ip addr add 10.0.0.1/32 dev lo", "10.9.9.9", "192.0.2.1", "10.9.9.9"},
		{"lo before encap", "ip addr add 10.0.0.1/32 dev lo", "", "192.0.2.1", "10.0.0.1"},
		{"IPv4 before IPv6", "ip addr add 2001:db8::aa/128 dev lo; ip addr add 10.0.0.1/32 dev lo", "", "", "10.0.0.1"},
		{"IPv6 alone", "ip addr add 2001:db8::aa/128 dev lo", "", "", "2001:db8::aa"},
		{"encap", "", "", "192.0.2.1", "192.0.2.1"},
		{"none", "", "", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var configured, encap netip.Addr
			if tc.configured != "" {
				configured = a(tc.configured)
			}
			if tc.encap != "" {
				encap = a(tc.encap)
			}
			got, err := newFacts(t, links+tc.lo).VTEP(configured, encap)
			if tc.want == "" {
				if err == nil {
					t.Fatalf("got %s, want an error", got)
				}
				return
			}
			if err != nil || got != a(tc.want) {
				t.Fatalf("got %s, %v; want %s", got, err, tc.want)
			}
		})
	}
}

func TestTowards(t *testing.T) {
	f := newFacts(t, links+`ip addr add 10.0.0.1/32 dev lo; ip route add default via 192.0.2.254 dev eth0
		ip route add 203.0.113.0/24 via 198.51.100.254 dev eth1 mtu 1400; ip -6 route add 2001:db8:1::/48 via 2001:db8::2 dev eth0`)
	for _, tc := range []struct {
		to, dev string
		mtu     int
		def     bool
	}{
		{"198.51.100.7", "eth1", 9000, false},
		{"203.0.113.7", "eth1", 1400, false},
		{"8.8.8.8", "eth0", 1600, true},
		{"2001:db8:1::7", "eth0", 1600, false},
		{"192.0.2.1", "eth0", 1600, false},
		{"198.51.100.1", "eth1", 9000, false},
		{"10.0.0.1", "eth0", 1600, false},
	} {
		u, err := f.Towards(netip.MustParseAddr(tc.to))
		if err != nil || u.Name != tc.dev || u.MTU != tc.mtu || u.Ifindex == 0 {
			t.Errorf("towards %s: %+v, %v; want %s with %d", tc.to, u, err, tc.dev, tc.mtu)
		}
		if def, err := f.ByDefault(netip.MustParseAddr(tc.to)); err != nil || def != tc.def {
			t.Errorf("towards %s by a default route: %t, %v", tc.to, def, err)
		}
	}
	if u, err := f.Towards(netip.MustParseAddr("2001:4860::1")); err == nil {
		t.Errorf("no route, but %+v", u)
	}
	if _, err := f.ByDefault(netip.MustParseAddr("2001:4860::1")); err == nil {
		t.Error("no route, and no error")
	}
	if mtu, err := f.MTU("eth1"); mtu != 9000 || err != nil {
		t.Errorf("MTU of eth1: %d, %v", mtu, err)
	}
	if mtu, err := f.MTU("eth9"); err == nil {
		t.Errorf("a link that is not there has the MTU %d", mtu)
	}
}

// Both families have default routes, and routes to their halves are none.
func TestByDefault(t *testing.T) {
	f := newFacts(t, links+`ip addr add 10.0.0.1/32 dev lo; ip -6 addr add 2001:db8:a::1/128 dev lo
		ip route add default via 192.0.2.254 dev eth0; ip -6 route add default via 2001:db8::2 dev eth0
		ip route add 128.0.0.0/2 via 192.0.2.254 dev eth0; ip -6 route add 4000::/2 via 2001:db8::2 dev eth0
		ip -6 route add 2001:db8:1::/48 via 2001:db8::2 dev eth0
		ip -6 route add default via 2001:db8::3 dev eth0 metric 2000`)
	for to, want := range map[string]bool{
		"8.8.8.8": true, "203.0.113.1": true, "129.0.0.1": false, "192.0.2.9": false, "10.0.0.1": false,
		"2001:4860::1": true, "fd00::1": true, "4000::1": false, "2001:db8:1::7": false, "2001:db8::9": false, "2001:db8:a::1": false,
	} {
		if got, err := f.ByDefault(netip.MustParseAddr(to)); err != nil || got != want {
			t.Errorf("towards %s by a default route: %t, %v, want %t", to, got, err, want)
		}
	}
}

func TestDumpRetries(t *testing.T) {
	n := 0
	v, err := link.Dump(func() (int, error) {
		if n++; n < 3 {
			return 0, netlink.ErrDumpInterrupted
		}
		return n, nil
	})
	if v != 3 || err != nil {
		t.Fatalf("got %d, %v", v, err)
	}
	if _, err := link.Dump(func() (int, error) { return 0, netlink.ErrDumpInterrupted }); !errors.Is(err, netlink.ErrDumpInterrupted) {
		t.Fatalf("endless interruption: %v", err)
	}
}
