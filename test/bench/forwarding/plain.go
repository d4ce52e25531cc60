package forwarding

import (
	"context"
	"fmt"
	"strings"
)

// plain is the kernel's own way: a VXLAN device without learning in a bridge
// that has the router MAC, and a routing table for the VRF that rules choose by
// the incoming device. Hosts have routes of their own, as in Sluice's maps.
func plain(ctx context.Context, s *site, offloads bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "link add sluice0 address %s mtu 9216 type veth peer name sluice0-ovs mtu 9216 netns %s\nlink set sluice0 up\n", nextHopMAC, s.ovn.name)
	fmt.Fprintf(&b, "link add name bridge address %s type bridge\nlink add vx type vxlan id %d local %s dstport %d nolearning noudpcsum\n", routerMAC, vni, nodeVTEP, vxlanPort)
	fmt.Fprintf(&b, "link set vx master bridge up\nlink set dev bridge mtu %d up\n", innerMTU)
	for _, f := range families {
		fmt.Fprintf(&b, "neigh replace %s lladdr %s dev bridge nud permanent\n", f.vtep, farMAC)
		fmt.Fprintf(&b, "neigh replace %s lladdr %s dev sluice0 nud permanent\n", f.hop, gatewayMAC)
		route := func(host fmt.Stringer, local bool) {
			if local {
				fmt.Fprintf(&b, "route add %s via %s dev sluice0 onlink table %d\n", host, f.hop, vni)
			} else {
				fmt.Fprintf(&b, "route add %s via %s dev bridge onlink table %d\n", host, f.vtep, vni)
			}
		}
		route(f.near, true)
		route(f.far, false)
		for i := range otherHosts {
			route(f.others(i), i%2 == 0)
		}
	}
	if err := s.node.ip(ctx, b.String()); err != nil {
		return err
	}
	script := fmt.Sprintf(`echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
		for d in bridge sluice0; do ip rule add iif $d lookup %[1]d; ip -6 rule add iif $d lookup %[1]d; done
		bridge fdb add %[2]s dev vx dst %[3]s self; bridge fdb add %[2]s dev vx master static
		`, vni, farMAC, farVTEP)
	if !offloads {
		script += "ethtool -K sluice0 tx off tso off gso off gro off >/dev/null\n"
	}
	return s.node.run(ctx, script)
}
