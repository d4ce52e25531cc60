package lab

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
)

const (
	// geneveBridge joins the chassis' Geneve links in the fabric.
	geneveBridge = "geneve"
	// geneveLink is a chassis' link into br-phy.
	geneveLink = "encap"
)

// makeUnderlay makes all namespaces but the VMs', the routed underlay of VTEPs
// and the switched one of Geneve.
func (l *Lab) makeUnderlay(ctx context.Context) error {
	var spaces, links, fabric strings.Builder
	fns := l.prefix + "-" + fabricNode
	fmt.Fprintf(&fabric, "link set lo up\nlink add %s type bridge\nlink set %s up\n", geneveBridge, geneveBridge)
	for _, n := range l.Nodes() {
		fmt.Fprintf(&spaces, "netns add %s\n", n.Netns)
		if n.Index == 0 {
			continue
		}
		side := fmt.Sprintf("u%d", n.Index)
		fmt.Fprintf(&links, "link add %s netns %s type veth peer name %s netns %s\n", UnderlayLink, n.Netns, side, fns)
		fmt.Fprintf(&fabric, "addr add 172.29.%d.1/30 dev %s\naddr add fd29:%d::1/64 dev %s nodad\nlink set %s up\n", n.Index, side, n.Index, side, side)
		fmt.Fprintf(&fabric, "route add %s via 172.29.%d.2\nroute add %s via fd29:%d::2\n", n.VTEP4, n.Index, n.VTEP6, n.Index)
		if n.Kind == KindChassis {
			side := fmt.Sprintf("g%d", n.Index)
			fmt.Fprintf(&links, "link add %s netns %s type veth peer name %s netns %s\n", geneveLink, n.Netns, side, fns)
			fmt.Fprintf(&fabric, "link set %s master %s up\n", side, geneveBridge)
		}
	}
	if err := ipBatch(ctx, "", spaces.String()); err != nil {
		return err
	}
	if err := ipBatch(ctx, "", links.String()); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, n := range l.Nodes() {
		if n.Index == 0 {
			continue
		}
		g.Go(func() error { return l.setUpNode(gctx, n) })
	}
	g.Go(func() error {
		f, err := l.Node(fabricNode)
		if err != nil {
			return err
		}
		if err := l.shell(gctx, f, quietIPv6+"echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding"); err != nil {
			return err
		}
		return ipBatch(gctx, fns, fabric.String())
	})
	return g.Wait()
}

// quietIPv6 keeps duplicate address detection from delaying addresses.
const quietIPv6 = "echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad; echo 0 >/proc/sys/net/ipv6/conf/default/accept_ra; "

// silent leaves requests for the address of br-phy to br-phy: the kernel sees what comes to
// a port of the userspace datapath, too, and would answer with this link's MAC address. The
// other chassis keep the answer that comes last, and packets for it are lost.
const silent = "echo 8 >/proc/sys/net/ipv4/conf/" + geneveLink + "/arp_ignore; "

func (l *Lab) setUpNode(ctx context.Context, n Node) error {
	if err := l.makeMounts(ctx, n); err != nil {
		return err
	}
	cmds := quietIPv6
	var c Cloud
	if n.Kind == KindChassis {
		var err error
		if c, err = l.cloud(n.Cloud); err != nil {
			return err
		}
		cmds += c.wholePackets(geneveLink)
		if !c.KernelDatapath {
			cmds += silent
		}
	}
	if err := l.shell(ctx, n, "set -e; "+cmds); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "link set lo up\naddr add %s/32 dev lo\naddr add %s/128 dev lo nodad\n", n.VTEP4, n.VTEP6)
	fmt.Fprintf(&b, "addr add 172.29.%d.2/30 dev %s\naddr add fd29:%d::2/64 dev %s nodad\nlink set %s up\n", n.Index, UnderlayLink, n.Index, UnderlayLink, UnderlayLink)
	fmt.Fprintf(&b, "route add 172.30.0.0/16 via 172.29.%d.1 src %s\nroute add fd30::/64 via fd29:%d::1 src %s\n", n.Index, n.VTEP4, n.Index, n.VTEP6)
	if n.Kind == KindChassis {
		fmt.Fprintf(&b, "link set %s up\n", geneveLink)
	}
	if c.KernelDatapath {
		fmt.Fprintf(&b, "addr add %s/24 dev %s\n", n.Encap, geneveLink)
	}
	return ipBatch(ctx, n.Netns, b.String())
}

func (l *Lab) shell(ctx context.Context, n Node, script string) error {
	_, err := run(l.command(ctx, n, "sh", "-c", script), "shell on "+n.Name)
	return err
}
