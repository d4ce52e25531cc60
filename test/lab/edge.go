package lab

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
)

// A peer with FRR is a provider edge as operators build them: for each VRF a VRF
// device with a bridge in it, on that a VXLAN device, and a link to a host, node
// PEER-VNI. FRR announces the VRF's connected subnets as Type-5 routes, and zebra
// writes what it learns into the kernel.

// EdgeVRF is the name of a VRF's device at a peer with FRR.
func EdgeVRF(vni uint32) string { return fmt.Sprintf("vrf-%d", vni) }

// routerOf is the address that a subnet's hosts have as their default gateway.
func routerOf(p netip.Prefix) netip.Addr { return p.Masked().Addr().Next() }

// edgeTable is the routing table of the first VRF of a peer.
const edgeTable = 1000

func (l *Lab) startEdge(ctx context.Context, n Node, p Peer) error {
	// A flow is known by its ports, too.
	forward := "set -e; cd /proc/sys/net; echo 1 >ipv4/ip_forward; echo 1 >ipv6/conf/all/forwarding; " +
		"echo 1 >ipv4/fib_multipath_hash_policy; echo 1 >ipv6/fib_multipath_hash_policy"
	if err := l.shell(ctx, n, forward); err != nil {
		return err
	}
	for i, v := range p.VRFs {
		if err := l.makeEdgeVRF(ctx, n, p, v, edgeTable+i); err != nil {
			return fmt.Errorf("vrf %d of peer %s: %w", v.VNI, p.Name, err)
		}
	}
	if err := l.startFRR(ctx, n, l.edgeConfig(n, p)); err != nil {
		return err
	}
	args := []string{"vtysh", "-c", "configure terminal"}
	for _, v := range p.VRFs {
		args = append(args, "-c", "vrf "+EdgeVRF(v.VNI), "-c", fmt.Sprintf("vni %d", v.VNI), "-c", "exit-vrf")
	}
	_, err := run(l.command(ctx, n, args...), "VNIs of "+p.Name)
	return err
}

func (l *Lab) makeEdgeVRF(ctx context.Context, n Node, p Peer, v PeerVRF, table int) error {
	host, err := l.Node(VRFNode(p.Name, v.VNI))
	if err != nil {
		return err
	}
	if err := l.shell(ctx, host, quietIPv6); err != nil {
		return err
	}
	vrf, bridge, vxlan, link := EdgeVRF(v.VNI), edgeBridge(v.VNI), vxlanName(v.VNI), fmt.Sprintf("host%d", v.VNI)
	var b, h strings.Builder
	fmt.Fprintf(&b, "link add %s type vrf table %d\nlink set %s up\n", vrf, table, vrf)
	fmt.Fprintf(&b, "link add %s address %s mtu %d type bridge\nlink set %s master %s addrgenmode none up\n",
		bridge, PeerRouterMAC(p.Name), VMMTU, bridge, vrf)
	fmt.Fprintf(&b, "link add %s mtu %d type vxlan id %d local %s dstport 4789 nolearning\nlink set %s master %s addrgenmode none\n",
		vxlan, VMMTU, v.VNI, n.VTEP4, vxlan, bridge)
	fmt.Fprintf(&b, "link set %s type bridge_slave learning off neigh_suppress on\nlink set %s up\n", vxlan, vxlan)
	fmt.Fprintf(&b, "link add %s type veth peer name eth0 netns %s\nlink set %s master %s\nlink set %s up\n", link, host.Netns, link, vrf, link)
	fmt.Fprint(&h, "link set lo up\nlink set eth0 up\n")
	way := map[bool]bool{} // by family
	for _, a := range v.Addrs {
		router := routerOf(a)
		fmt.Fprintf(&b, "addr add %s/%d dev %s%s\n", router, a.Bits(), link, nodad(router))
		fmt.Fprintf(&h, "addr add %s dev eth0%s\n", a, nodad(a.Addr()))
		// The host calls with the first address of a family, since another peer may
		// have the others too.
		if is6 := a.Addr().Is6(); !way[is6] {
			fmt.Fprintf(&h, "route add default via %s src %s\n", router, a.Addr())
			way[is6] = true
		}
	}
	if err := ipBatch(ctx, n.Netns, b.String()); err != nil {
		return err
	}
	return ipBatch(ctx, host.Netns, h.String())
}

func (l *Lab) edgeConfig(n Node, p Peer) string {
	var b strings.Builder
	as := l.Scenario().AS
	fmt.Fprintf(&b, "hostname %s\nlog stdout informational\n", n.Name)
	fmt.Fprintf(&b, "router bgp %d\n bgp router-id %s\n no bgp default ipv4-unicast\n", as, n.VTEP4)
	var reflectors []string
	for _, r := range l.Nodes() {
		if r.Kind != KindReflector {
			continue
		}
		reflectors = append(reflectors, r.VTEP4.String())
		fmt.Fprintf(&b, " neighbor %[1]s remote-as %[2]d\n neighbor %[1]s update-source %[3]s\n neighbor %[1]s timers connect 1\n", r.VTEP4, as, n.VTEP4)
	}
	b.WriteString(" address-family l2vpn evpn\n")
	for _, r := range reflectors {
		fmt.Fprintf(&b, "  neighbor %s activate\n", r)
	}
	b.WriteString("  advertise-all-vni\n exit-address-family\nexit\n")
	for _, v := range p.VRFs {
		fmt.Fprintf(&b, "router bgp %d vrf %s\n bgp router-id %s\n", as, EdgeVRF(v.VNI), n.VTEP4)
		for _, family := range []string{"ipv4", "ipv6"} {
			fmt.Fprintf(&b, " address-family %s unicast\n  redistribute connected\n  maximum-paths ibgp 8\n exit-address-family\n", family)
		}
		b.WriteString(" address-family l2vpn evpn\n  advertise ipv4 unicast\n  advertise ipv6 unicast\n exit-address-family\nexit\n")
	}
	return b.String()
}

// EdgeLinks are the devices of a VRF at a peer with FRR that have the MTU of what
// is tunnelled.
func EdgeLinks(vni uint32) []string { return []string{vxlanName(vni), edgeBridge(vni)} }

func edgeBridge(vni uint32) string { return fmt.Sprintf("br-%d", vni) }
