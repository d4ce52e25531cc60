package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
)

// A peer is a provider edge without Sluice. Unless it is one with FRR (edge.go),
// it has no VRF devices: its node runs gobgpd, and each of its VRFs is a namespace of its own, node PEER-VNI, that
// holds the far end of a classic VXLAN device whose socket is in the peer's
// namespace. Routes are announced by PeerAnnounce and installed by PeerSync.

// VRFNode is the name of the namespace of a peer's VRF.
func VRFNode(peer string, vni uint32) string { return fmt.Sprintf("%s-%d", peer, vni) }

// PeerRouterMAC is the router MAC that a peer announces.
func PeerRouterMAC(peer string) string { return macOf(peer + "/router") }

func vxlanName(vni uint32) string { return fmt.Sprintf("vxlan%d", vni) }

func (l *Lab) startPeer(ctx context.Context, p Peer) error {
	n, err := l.Node(p.Name)
	if err != nil {
		return err
	}
	if p.FRR {
		return l.startEdge(ctx, n, p)
	}
	file := filepath.Join(n.Dir, "gobgpd.toml")
	if err := os.WriteFile(file, []byte(l.gobgpConfig(n)), 0o644); err != nil {
		return err
	}
	_, err = l.spawn(ctx, n, spec{
		name: "gobgpd", argv: []string{"gobgpd", "-f", file, "-p", "--api-hosts", "127.0.0.1:50051"},
		ready: func() error {
			_, err := run(l.command(ctx, n, "gobgp", "global"), "gobgp global")
			return err
		},
	})
	if err != nil {
		return err
	}
	for _, v := range p.VRFs {
		if err := l.makePeerVRF(ctx, n, p, v); err != nil {
			return fmt.Errorf("vrf %d of peer %s: %w", v.VNI, p.Name, err)
		}
		for _, a := range v.Addrs {
			if err := l.PeerAnnounce(ctx, p.Name, v.VNI, a.Masked()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *Lab) gobgpConfig(n Node) string {
	var b strings.Builder
	as := l.Scenario().AS
	fmt.Fprintf(&b, "[global.config]\nas = %d\nrouter-id = %q\nport = -1\n", as, n.VTEP4)
	for _, r := range l.Nodes() {
		if r.Kind != KindReflector {
			continue
		}
		fmt.Fprintf(&b, "[[neighbors]]\n[neighbors.config]\nneighbor-address = %q\npeer-as = %d\n", r.VTEP4, as)
		fmt.Fprintf(&b, "[neighbors.transport.config]\nlocal-address = %q\n", n.VTEP4)
		b.WriteString("[neighbors.timers.config]\nconnect-retry = 1\nhold-time = 9\nkeepalive-interval = 3\n")
		b.WriteString("[[neighbors.afi-safis]]\n[neighbors.afi-safis.config]\nafi-safi-name = \"l2vpn-evpn\"\n")
	}
	return b.String()
}

func (l *Lab) makePeerVRF(ctx context.Context, n Node, p Peer, v PeerVRF) error {
	vrf, err := l.Node(VRFNode(p.Name, v.VNI))
	if err != nil {
		return err
	}
	if err := l.shell(ctx, vrf, quietIPv6); err != nil {
		return err
	}
	local := n.VTEP4
	if p.Underlay6 {
		local = n.VTEP6
	}
	// The socket stays in the namespace that the device was made in.
	dev := vxlanName(v.VNI)
	err = ipBatch(ctx, n.Netns, fmt.Sprintf("link add %s address %s type vxlan id %d local %s dstport 4789 nolearning\nlink set %s netns %s\n",
		dev, PeerRouterMAC(p.Name), v.VNI, local, dev, vrf.Netns))
	if err != nil {
		return err
	}
	batch := fmt.Sprintf("link set lo up\nlink set %s mtu %d up\n", dev, VMMTU)
	for _, a := range v.Addrs {
		batch += fmt.Sprintf("addr add %s dev lo%s\n", a, nodad(a.Addr()))
	}
	return ipBatch(ctx, vrf.Netns, batch)
}

// PeerAnnounce makes a peer announce a Type-5 route of one of its VRFs, with the
// automatic route target.
func (l *Lab) PeerAnnounce(ctx context.Context, peer string, vni uint32, prefix netip.Prefix) error {
	return l.peerRoute(ctx, "add", peer, vni, prefix)
}

// PeerWithdraw takes the announcement back.
func (l *Lab) PeerWithdraw(ctx context.Context, peer string, vni uint32, prefix netip.Prefix) error {
	return l.peerRoute(ctx, "del", peer, vni, prefix)
}

func (l *Lab) peerRoute(ctx context.Context, verb, peer string, vni uint32, prefix netip.Prefix) error {
	p, n, err := l.peer(peer)
	if err != nil {
		return err
	}
	if p.FRR {
		return fmt.Errorf("peer %s announces what FRR has in its VRFs: give it an address", peer)
	}
	hop := n.VTEP4
	if p.Underlay6 {
		hop = n.VTEP6
	}
	// The number of an RD of type 1 has 16 bits (RFC 4364 section 4.2): the VRF's place, not its VNI.
	index := 1
	for i, v := range p.VRFs {
		if v.VNI == vni {
			index = i + 1
		}
	}
	_, err = l.Exec(ctx, peer, "gobgp", "global", "rib", verb, "-a", "evpn", "prefix", prefix.String(),
		"etag", "0", "label", fmt.Sprint(vni), "rd", fmt.Sprintf("%s:%d", n.VTEP4, index),
		"rt", fmt.Sprintf("%d:%d", l.Scenario().AS&0xffff, vni), "encap", "vxlan", "router-mac", PeerRouterMAC(peer), "nexthop", hop.String())
	return err
}

func (l *Lab) peer(name string) (Peer, Node, error) {
	n, err := l.Node(name)
	if err != nil {
		return Peer{}, Node{}, err
	}
	for _, p := range l.Scenario().Peers {
		if p.Name == name {
			return p, n, nil
		}
	}
	return Peer{}, Node{}, fmt.Errorf("%s is a %s, not a peer", name, n.Kind)
}

// PeerRoute is a Type-5 route that a peer knows.
type PeerRoute struct {
	Prefix    netip.Prefix
	VTEP      netip.Addr
	Label     uint32
	RouterMAC string
	// Targets are the route targets, as ASN:NUMBER.
	Targets []string
}

// PeerRoutes are all Type-5 paths in a peer's table, its own too. The peer runs gobgpd.
func (l *Lab) PeerRoutes(ctx context.Context, peer string) ([]PeerRoute, error) {
	out, err := l.Exec(ctx, peer, "gobgp", "global", "rib", "-a", "evpn", "-j")
	if err != nil {
		return nil, err
	}
	var rib map[string][]gobgpPath
	if err := json.Unmarshal([]byte(out), &rib); err != nil {
		return nil, fmt.Errorf("routes of peer %s: %w", peer, err)
	}
	var routes []PeerRoute
	for _, paths := range rib {
		for _, p := range paths {
			r, ok, err := p.route()
			if err != nil {
				return nil, fmt.Errorf("routes of peer %s: %w", peer, err)
			}
			if ok {
				routes = append(routes, r)
			}
		}
	}
	return routes, nil
}

// PeerSync installs the routes that the peer knows now into its VRFs, by the
// automatic route target, and removes those that are gone.
func (l *Lab) PeerSync(ctx context.Context, peer string) error {
	p, n, err := l.peer(peer)
	if err != nil {
		return err
	}
	routes, err := l.PeerRoutes(ctx, peer)
	if err != nil {
		return err
	}
	for _, v := range p.VRFs {
		if err := l.syncVRF(ctx, n, v, routes); err != nil {
			return err
		}
	}
	return nil
}

// routeProto marks the routes that PeerSync made.
const routeProto = "201"

func (l *Lab) syncVRF(ctx context.Context, n Node, v PeerVRF, routes []PeerRoute) error {
	vrf, err := l.Node(VRFNode(n.Name, v.VNI))
	if err != nil {
		return err
	}
	dev := vxlanName(v.VNI)
	var batch strings.Builder
	wanted := map[string]bool{}
	for _, r := range routes {
		if !r.targets(v.VNI) || r.VTEP == n.VTEP4 || r.VTEP == n.VTEP6 {
			continue
		}
		// The hop is a handle for the neighbour entry: one per VTEP and router MAC.
		hop := handle(r)
		wanted[r.Prefix.String()] = true
		fmt.Fprintf(&batch, "neigh replace %s lladdr %s dev %s nud permanent\n", hop, r.RouterMAC, dev)
		fmt.Fprintf(&batch, "route replace %s via %s dev %s onlink proto %s\n", r.Prefix, hop, dev, routeProto)
		// FDB first: a packet that finds the neighbour finds the tunnel too.
		if _, err := l.Exec(ctx, vrf.Name, "bridge", "fdb", "replace", r.RouterMAC, "dev", dev, "dst", r.VTEP.String(), "vni", fmt.Sprint(r.Label), "self"); err != nil {
			return err
		}
	}
	for _, family := range []string{"-4", "-6"} {
		out, err := l.Exec(ctx, vrf.Name, "ip", family, "-j", "route", "show", "proto", routeProto)
		if err != nil {
			return err
		}
		var have []struct{ Dst string }
		if err := json.Unmarshal([]byte(out), &have); err != nil {
			return fmt.Errorf("routes of %s: %w", vrf.Name, err)
		}
		for _, h := range have {
			if !wanted[canonical(h.Dst)] {
				fmt.Fprintf(&batch, "route del %s dev %s proto %s\n", canonical(h.Dst), dev, routeProto)
			}
		}
	}
	return ipBatch(ctx, vrf.Netns, batch.String())
}

// canonical writes a destination as ip-route prints it in prefix form.
func canonical(dst string) string {
	if dst == "default" {
		return dst
	}
	if a, err := netip.ParseAddr(dst); err == nil {
		return netip.PrefixFrom(a, a.BitLen()).String()
	}
	return dst
}

func handle(r PeerRoute) string {
	h := fnv.New32a()
	h.Write([]byte(r.VTEP.String() + r.RouterMAC))
	n := h.Sum32()
	if r.Prefix.Addr().Is6() {
		return fmt.Sprintf("fe80::%x:%x", n>>16, n&0xffff|1)
	}
	return fmt.Sprintf("169.254.%d.%d", n>>8&0xff, n&0xff|1)
}
