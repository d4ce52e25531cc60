//go:build guest

package kernelpath

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// agent makes what ovn-bgp-agent's EVPN driver and its FRR leave on a node for the
// site's VRF, in their words, and gives what is the agent's alone.
func (s *site) agent() {
	run(s.t, "node", fmt.Sprintf(`ip link add vrf-1001 type vrf table 1001; ip link set vrf-1001 up
		ip link add br-1001 address %[1]s type bridge stp_state 0; ip link set br-1001 master vrf-1001 up
		ip link add vxlan-1001 type vxlan id 1001 dstport 4789 local 192.0.2.1 nolearning udp6zerocsumrx; ip link set vxlan-1001 master br-1001 up
		ip link add lo-1001 type dummy; ip link set lo-1001 master vrf-1001 up; ip addr add 10.0.0.5/32 dev lo-1001
		ip route del local 10.0.0.5 dev lo-1001 table 1001
		ip link add veth-vrf-1001 address %[2]s type veth peer name veth-ovs-1001
		ip link set veth-vrf-1001 master vrf-1001 up; ip link set veth-ovs-1001 master br-ex up
		sysctl -qw net.ipv4.conf.veth-vrf-1001.forwarding=1 net.ipv4.conf.br-1001.forwarding=1 net.ipv4.conf.vrf-1001.forwarding=1
		ip neigh add 172.24.4.1 lladdr %[3]s dev veth-vrf-1001 nud permanent; ip neigh add fd17::1 lladdr %[3]s dev veth-vrf-1001 nud permanent
		ip route add 172.24.4.1 dev veth-vrf-1001 table 1001 scope link; ip route add 10.0.0.0/24 via 172.24.4.1 dev veth-vrf-1001 table 1001
		ip -6 route add fd17::1 dev veth-vrf-1001 table 1001; ip -6 route add fd00::/64 via fd17::1 dev veth-vrf-1001 table 1001
		ip route add unreachable default table 1001 metric 4278198272; ip -6 route add unreachable default table 1001 metric 4278198272
		ip neigh add 192.0.2.2 lladdr %[4]s dev br-1001 nud permanent extern_learn; ip neigh add fd99::2 lladdr %[4]s dev br-1001 nud permanent extern_learn
		bridge fdb add %[4]s dev vxlan-1001 dst 192.0.2.2 self; bridge fdb add %[4]s dev vxlan-1001 master static
		ip route add 10.9.0.0/24 via 192.0.2.2 dev br-1001 onlink table 1001 proto bgp metric 20
		ip -6 route add fd09::/64 via fd99::2 dev br-1001 onlink table 1001 proto bgp metric 20`, nodeMAC, hopMAC, gwMAC, peMAC))
}

// frrEnds is what "no vrf" in FRR does.
func (s *site) frrEnds() {
	run(s.t, "node", `ip route flush table 1001 proto bgp; ip -6 route flush table 1001 proto bgp
		ip neigh del 192.0.2.2 dev br-1001; ip neigh del fd99::2 dev br-1001`)
}

// strangers are an operator's, with such names. The last one has the whole form, and a
// VLAN that is no port of Open vSwitch.
const strangers = `ip link add vrf-2002 type vrf table 77; ip link add vrf-3003 type vrf table 3003; ip link add br-3003 type bridge
	ip link add vrf-4004 type vrf table 4004; ip link add br-4004 type bridge; ip link set br-4004 master vrf-4004
	ip link add vxlan-4004 type vxlan id 4004 dstport 14789; ip link set vxlan-4004 master br-4004
	ip link add vlan-4004 type dummy; ip link set vlan-4004 master vrf-4004`

// operators shows them.
const operators = "ip -o link | grep -E -- '-(2002|3003|4004)[:@]'"

// TestAdopt takes a VRF over from ovn-bgp-agent: with the mark alone traffic goes on;
// the node's own comes in the place of what the agent had, on the kernel path with
// sluice-vxlan, on that of the whole node, and where the VRF is on the eBPF path; an
// operator's devices with such names stay.
func TestAdopt(t *testing.T) {
	for _, tt := range []struct {
		name  string
		whole bool
	}{{"mixed", false}, {"whole node", true}} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t, false, true)
			s.agent()
			run(t, "node", strangers)
			before := run(t, "node", operators)
			both := func() {
				t.Helper()
				s.pings("pe", "-I 10.9.0.1", "10.0.0.5", "fd00::5")
				s.pings("ovn", "", "10.9.0.1", "fd09::1")
			}
			both()
			v := s.adopt()
			both()
			s.adopted()
			s.frrEnds()
			s.config.Whole = tt.whole
			s.path = kernel.NewPath(s.config, s.node)
			if !tt.whole {
				s.fabric = kernel.NewFabric(kernel.FabricConfig{Namespace: netns.Named("node"), RouterMAC: mac(nodeMAC),
					Attach: func(_ context.Context, _ string, index int) error { return s.data.Attach(ebpf.FabricIn, index) }})
				if _, err := s.fabric.Ensure(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			kept := numbers(t)
			r := s.rows()
			s.mustApply(r)
			if !tt.whole {
				s.handOver()
			}
			// The two ways in have one address: the switch learns the new one's place.
			run(t, "node", "ip link set veth-ovs-1001 nomaster")
			s.same(r)
			both()
			for _, name := range v.Ports {
				if err := kernel.RemoveAdopted(netns.Named("node"), name); err != nil {
					t.Error(err)
				}
			}
			if left, err := kernel.Adopted(netns.Named("node")); err != nil || len(left) != 0 {
				t.Errorf("left: %v, %v", left, err)
			}
			s.same(r)
			both()
			if now := numbers(t); now != kept {
				t.Errorf("the VRF and its bridge were not kept: %q, %q", kept, now)
			}
			if err := s.remove(r); err != nil {
				t.Fatal(err)
			}
			if out := run(t, "node", "ip -o link; ip route show table all; ip -6 route show table all"); strings.Contains(out, "1001") {
				t.Errorf("left of the VRF: %s", out)
			}
			if now := run(t, "node", operators); now != before {
				t.Errorf("an operator's devices were\n%s\nand are\n%s", before, now)
			}
		})
	}
}

// numbers are those of the VRF and its bridge.
func numbers(t *testing.T) string {
	t.Helper()
	return run(t, "node", `for d in vrf-1001 br-1001; do ip -o link show $d | cut -d : -f 1; done`)
}

func (s *site) adopt() kernel.AgentVRF {
	s.t.Helper()
	vrfs, left, err := kernel.AgentVRFs(netns.Named("node"), func(string) bool { return false })
	if err != nil || len(vrfs) != 1 || vrfs[0].VNI != vni {
		s.t.Fatalf("found %+v, %v", vrfs, err)
	}
	v := vrfs[0]
	want := []string{"vrf-1001", "br-1001", "vxlan-1001", "lo-1001", "veth-vrf-1001", "veth-ovs-1001"}
	if !slices.Equal(v.Devices, want) || !slices.Equal(v.Ports, want[5:]) || len(v.Routes) != 6 {
		s.t.Errorf("found %+v", v)
	}
	if len(left) != 3 || left[0].VNI != 2002 || left[1].VNI != 3003 || left[2].VNI != 4004 {
		s.t.Errorf("left to their owner: %v", left)
	}
	if err := v.Adopt(netns.Named("node")); err != nil {
		s.t.Fatal(err)
	}
	return v
}

// adopted: it is ours now, nothing more is found, and FRR's routes are untouched.
func (s *site) adopted() {
	s.t.Helper()
	if vrfs, _, err := kernel.AgentVRFs(netns.Named("node"), func(string) bool { return false }); err != nil || len(vrfs) != 0 {
		s.t.Errorf("found again: %+v, %v", vrfs, err)
	}
	if left, err := kernel.Adopted(netns.Named("node")); err != nil || !slices.Equal(left, []string{"veth-ovs-1001", "veth-vrf-1001"}) {
		s.t.Errorf("to be removed: %v, %v", left, err)
	}
	if out := run(s.t, "node", "ip route show table 1001; ip -6 route show table 1001"); strings.Count(out, "proto 115 metric 173") != 4 || strings.Count(out, "proto bgp") != 2 {
		s.t.Errorf("routes: %s", out)
	}
}

// TestAdoptedGoesWithItsVRF: a VRF that Sluice does not want on the kernel path takes
// what was adopted in it along; left behind, it would be a way of tenants into the
// node's own routing.
func TestAdoptedGoesWithItsVRF(t *testing.T) {
	s := newSite(t, false, true)
	s.agent()
	run(t, "node", strangers)
	v := s.adopt()
	if len(v.Ports) == 0 {
		t.Fatal("no port was adopted")
	}
	for i, err := range s.path.VRFs().Delete(t.Context(), []intent.VNI{1001}) {
		if err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	if left, err := kernel.Adopted(netns.Named("node")); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if out := run(t, "node", "ip -o link; ip route show table all; ip -6 route show table all"); strings.Contains(out, "1001") {
		t.Errorf("left of the VRF: %s", out)
	}
}
