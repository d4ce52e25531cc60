//go:build guest

package kernelpath

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

func (s *site) load() {
	t := s.t
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("bpf", dir, "bpf", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	s.pins = filepath.Join(dir, "sluice")
	d, err := ebpf.Load(ebpf.Config{Dir: s.pins, Devices: s, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Limits: ebpf.Limits{Hosts: 1024, Prefixes: 1024, VRFs: 64},
		Node: ebpf.Node{RouterMAC: mac(nodeMAC), NextHopMAC: mac(hopMAC), VTEP4: addr("192.0.2.1"), VTEP6: addr("2001:db8::1"),
			VXLANIndex: 1, UnderlayMTU: 1500}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	s.data = d
}

// IfIndex is for the rows of VRFs.
func (s *site) IfIndex(vni intent.VNI) (int, bool) { return s.path.IfIndex(vni) }

func guardOf(g kernel.GuardedDevice) ebpf.Guard {
	return ebpf.Guard{IfIndex: g.IfIndex, VNI: g.VNI, FromOVN: g.FromOVN, ICMPSource6: g.ICMPSource6}
}

// TestGuard sends to the node's own addresses from both sides: nothing comes to
// the host, whatever becomes of the VRF meanwhile.
func TestGuard(t *testing.T) {
	for _, tt := range []struct{ name, script string }{
		{"mixed", ":"},
		{"an address of the node in the VRF", "ip addr add 10.66.0.1/32 dev vrf-1001; ip addr add fd66::1/128 dev vrf-1001 nodad"},
		{"without the rule for VRFs", "ip rule del l3mdev; ip -6 rule del l3mdev"},
		{"without the VRF", "ip link del vrf-1001"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t, false, false)
			s.mustApply(s.rows())
			s.handOver()
			s.pings("pe", "-I 10.9.0.1", "10.0.0.5", "fd00::5")
			run(t, "node", `ip link set lo up; ip addr add 198.51.100.1/32 dev lo; ip addr add 2001:db8:99::1/128 dev lo
				ip route add default via 192.0.2.2; ip -6 route add default via 2001:db8::2; sysctl -qw net.ipv4.ip_forward=1
				`+tt.script)
			s.refused()
		})
	}
}

// refused sends what the kernel would take for itself, or forward by the node's
// own tables.
func (s *site) refused() {
	s.t.Helper()
	before, drops := hostCounters(s.t), s.drops()
	// The provider edge reaches the addresses of the underlay without a tunnel.
	own := "198.51.100.1 10.66.0.1 169.254.169.254 192.0.0.8 2001:db8:99::1 fd66::1"
	var script strings.Builder
	for _, to := range strings.Fields(own) {
		fmt.Fprintf(&script, "ping -n -c1 -W1 -I %s %s & ", map[bool]string{true: "fd09::1", false: "10.9.0.1"}[strings.Contains(to, ":")], to)
	}
	_, _ = try("pe", script.String()+"wait")
	script.Reset()
	for _, to := range strings.Fields(own + " 192.0.2.1 192.0.2.2 2001:db8::1 2001:db8::2") {
		fmt.Fprintf(&script, "ping -n -c1 -W1 %s & ", to)
	}
	_, _ = try("ovn", script.String()+"wait")
	if after := hostCounters(s.t); after != before {
		s.t.Errorf("packets reached the host, or left it: %s, before %s\n%s", after, before, s.state())
	}
	if got := s.drops() - drops; got == 0 {
		s.t.Error("none was dropped by the guard")
	}
}

func (s *site) drops() uint64 {
	s.t.Helper()
	return s.dropped(drop.NotForwarded)
}

func (s *site) dropped(reason drop.Reason) uint64 {
	s.t.Helper()
	r, err := ebpf.OpenReader(s.pins, ebpf.Fabric)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Close()
	counts, err := r.Drops()
	if err != nil {
		s.t.Fatal(err)
	}
	return counts[reason]
}

// hostCounters are what the host took, and what it forwarded into the underlay.
func hostCounters(t *testing.T) string {
	t.Helper()
	out := run(t, "node", "cat /proc/net/snmp /proc/net/snmp6")
	var got []string
	lines := strings.Split(out, "\n")
	for i, line := range lines {
		for _, name := range []string{"Icmp6InEchos", "Icmp6OutEchoReplies"} {
			if strings.HasPrefix(line, name) {
				got = append(got, strings.Join(strings.Fields(line), "="))
			}
		}
		if strings.HasPrefix(line, "Icmp: InMsgs") {
			names, values := strings.Fields(line), strings.Fields(lines[i+1])
			for j, name := range names {
				if name == "InEchos" || name == "OutEchoReps" {
					got = append(got, fmt.Sprintf("%s=%s", name, values[j]))
				}
			}
		}
	}
	return strings.Join(got, " ")
}

// TestGuardHairpin: what comes from a gateway port does not go back to it; to another
// one behind the same pair it does.
func TestGuardHairpin(t *testing.T) {
	s := newSite(t, false, false)
	r := s.rows()
	other := r.gateways[gatewayKey()]
	other.Key.MAC, other.Addr4, other.Addr6 = mac("02:00:00:00:00:bb"), addr("172.24.4.2"), addr("fd17::2")
	r.gateways[other.Key] = other
	for _, p := range []string{"10.7.0.0/24", "fd07::/64"} {
		k := intent.NewRouteKey(vni, netip.MustParsePrefix(p))
		r.routes[k] = intent.Route{Key: k, Kind: intent.RouteLocal, Gateway: other.Key}
	}
	s.mustApply(r)
	s.handOver()
	for _, tt := range []struct {
		to   string
		want uint64
	}{{"10.0.0.77", 1}, {"fd00::77", 1}, {"10.7.0.9", 0}, {"fd07::9", 0}} {
		hairpin, others := s.dropped(drop.Hairpin), s.drops()
		out, ok := ping("ovn", "", tt.to)
		if got := s.dropped(drop.Hairpin) - hairpin; ok || got != tt.want || s.drops() != others {
			t.Errorf("to %s: %d packets were dropped as hairpin, %d for another reason; want %d and none: %s", tt.to, got, s.drops()-others, tt.want, out)
		}
	}
	s.pings("ovn", "", "10.9.0.1", "fd09::1")
}

// TestGuardRules has rules of the operator's, before the one for VRFs, that lead some
// of a tenant's packets elsewhere: the guard asks with all that they select by.
func TestGuardRules(t *testing.T) {
	s := newSite(t, false, false)
	s.mustApply(s.rows())
	s.handOver()
	run(t, "node", "ip route add default via 192.0.2.2 table 77; ip -6 route add default via 2001:db8::2 table 77; sysctl -qw net.ipv4.ip_forward=1")
	for _, tt := range []struct{ family, rule, args, to string }{
		{"-4", "tos 0x10", "-Q 0x10", "10.9.0.1"}, {"-6", "tos 0x10", "-Q 0x10", "fd09::1"},
		{"-4", "ipproto icmp", "", "10.9.0.1"}, {"-6", "ipproto ipv6-icmp", "", "fd09::1"},
	} {
		s.pings("ovn", tt.args, tt.to)
		run(t, "node", "ip "+tt.family+" rule add pref 500 "+tt.rule+" lookup 77")
		before := s.drops()
		out, ok := ping("ovn", tt.args, tt.to)
		if got := s.drops() - before; ok || got == 0 {
			t.Errorf("ip %s rule %s: %d packets were dropped: %s", tt.family, tt.rule, got, out)
		}
		run(t, "node", "ip "+tt.family+" rule del pref 500")
	}
}
