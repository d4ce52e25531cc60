//go:build guest

package kernelpath

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/drop"
)

// TestTraffic sends packets both ways, in all combinations of form and underlay;
// what the kernel answers has the right source; what was made is what is listed,
// by a new process too; and all of it goes.
func TestTraffic(t *testing.T) {
	for _, tt := range []struct {
		name             string
		underlay6, whole bool
	}{{"mixed", false, false}, {"mixed, IPv6 underlay", true, false}, {"whole node", false, true}, {"whole node, IPv6 underlay", true, true}} {
		t.Run(tt.name, func(t *testing.T) { traffic(t, tt.underlay6, tt.whole) })
	}
}

func traffic(t *testing.T, underlay6, whole bool) {
	s := newSite(t, underlay6, whole)
	before := run(t, "node", "ip -o link; ip route show table all; ip -6 route show table all")
	r := s.rows()
	s.mustApply(r)
	if !whole {
		s.handOver()
	}
	s.same(r)
	s.pings("pe", "-I 10.9.0.1", "10.0.0.5", "fd00::5")
	s.pings("ovn", "", "10.9.0.1", "fd09::1")
	s.errors()
	s.turns()

	s.path = kernel.NewPath(s.config, s.node)
	s.same(r)
	if !whole {
		if _, err := s.fabric.Ensure(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.same(r)
	s.pings("pe", "-I 10.9.0.1", "10.0.0.5", "fd00::5")

	if err := s.remove(r); err != nil {
		t.Fatal(err)
	}
	s.same(rows{})
	if !whole {
		if out := run(t, "node", "sysctl -n net.ipv6.conf.sluice-vxlan.disable_ipv6; ip neigh show dev sluice-vxlan; ip -6 neigh show dev sluice-vxlan"); out != "1\n" {
			t.Errorf("left on sluice-vxlan: %q", out)
		}
	}
	if after := run(t, "node", "ip -o link; ip route show table all; ip -6 route show table all"); lines(after) != lines(before) {
		t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
}

// lines are what does not change by itself.
func lines(out string) string {
	var keep []string
	for line := range strings.Lines(out) {
		if !strings.Contains(line, "sluice-vxlan") {
			keep = append(keep, line)
		}
	}
	return strings.Join(keep, "")
}

// errors are of the kernel itself: their source is no address of the node.
func (s *site) errors() {
	s.t.Helper()
	mtu := 1450
	if s.v6 {
		mtu = 1430
	}
	for _, tt := range []struct{ ns, args, to, from, what string }{
		{"pe", "-t1 -I 10.9.0.1", "10.0.0.5", "172.24.4.1", "Time to live exceeded"},
		{"pe", "-t1 -I fd09::1", "fd00::5", "fd17::1", "Hop limit"},
		{"pe", "-s1402 -M do -I 10.9.0.1", "10.0.0.5", "172.24.4.1", "mtu = 1400"},
		{"pe", "-s1402 -M do -I fd09::1", "fd00::5", "fd17::1", "mtu=1400"},
		{"pe", "-I 10.9.0.1", "10.77.0.1", "172.24.4.1", "Unreachable"},
		{"pe", "-I fd09::1", "fd77::1", "fd17::1", "No route"},
		{"ovn", "-t1", "10.9.0.1", "172.24.4.9", "Time to live exceeded"},
		{"ovn", "-t1", "fd09::1", "fd17::9", "Hop limit"},
		{"ovn", "-s1440 -M do", "10.9.0.1", "172.24.4.9", fmt.Sprintf("mtu = %d", mtu)},
		{"ovn", "-s1440 -M do", "fd09::1", "fd17::9", fmt.Sprintf("mtu=%d", mtu)},
		{"ovn", "", "10.77.0.1", "172.24.4.9", "Unreachable"},
		{"ovn", "", "fd77::1", "fd17::9", "No route"},
	} {
		out, _ := ping(tt.ns, tt.args, tt.to)
		if !strings.Contains(out, "rom "+tt.from+" ") || !strings.Contains(out, tt.what) {
			s.t.Errorf("from %s, ping %s %s: want %q from %s: %s", tt.ns, tt.args, tt.to, tt.what, tt.from, out)
		}
	}
}

// turns: what comes from the fabric does not go back there.
func (s *site) turns() {
	s.t.Helper()
	for from, to := range map[string]string{"10.9.0.1": "10.9.0.77", "fd09::1": "fd09::77"} {
		before := s.dropped(drop.RelayRefused)
		out, ok := ping("pe", "-I "+from, to)
		if got := s.dropped(drop.RelayRefused) - before; ok || got != 1 {
			s.t.Errorf("from %s to %s: %d packets were refused, want the one: %s", from, to, got, out)
		}
	}
}

// TestDrift changes what was made, one thing at a time: it is seen, and mended.
func TestDrift(t *testing.T) {
	s := newSite(t, false, false)
	r := s.rows()
	s.mustApply(r)
	s.same(r)
	for _, script := range []string{
		"ip link set vrf-1001 down", "ip link set br-1001 down", "ip link set br-1001 nomaster", "ip link del vx-1001",
		"ip link set br-1001 address 02:00:00:00:00:99", "ip link set vx-1001 mtu 1500", "ip link del vrf-1001", "ip link del br-1001",
		"ip route del unreachable default table 1001 metric 4278198272", "ip -6 route del unreachable default table 1001 metric 4278198272",
		"sysctl -qw net.ipv4.conf.br-1001.forwarding=0", "sysctl -qw net.ipv4.conf.sv1001-0.rp_filter=0", "sysctl -qw net.ipv6.conf.sv1001-0.forwarding=0",
		"sysctl -qw net.ipv6.conf.sluice-vxlan.disable_ipv6=1", "ip addr flush dev br-1001", "ip addr flush dev sv1001-0", "ip addr flush dev vrf-1001",
		"ip link set sv1001-0 down; ip link set sv1001-0 up", "ip link del sv1001-0", "ip link set so1001-0 nomaster", "ip neigh flush nud permanent dev sv1001-0",
		"ip neigh del 172.24.4.1 dev sv1001-0", "ip neigh flush nud permanent dev sluice-vxlan", "ip route del 10.9.0.0/24 table 1001 metric 173",
		"ip -6 route del fd00::/64 table 1001", "ip route replace 10.0.0.0/24 table 1001 metric 173 proto 115 via 172.24.4.1 dev sv1001-0 onlink",
		"ip route replace 10.9.0.0/24 table 1001 metric 173 proto 115 mtu lock 1450 encap ip id 1002 src 192.0.2.1 dst 192.0.2.2 ttl 64 via 169.254.200.1 dev sluice-vxlan onlink",
		"ip link property del dev sv1001-0 altname sluice:gateway:sv1001-0," + gwMAC + ",1400,172.24.4.9,fd17::9",
	} {
		t.Run(script, func(t *testing.T) {
			s.t = t
			run(t, "node", script)
			if s.difference(r) == "" {
				t.Errorf("it is not seen\n%s", s.state())
			}
			s.mustApply(r)
			s.same(r)
			s.handOver()
			s.pings("pe", "-I 10.9.0.1", "10.0.0.5", "fd00::5")
		})
	}
}
