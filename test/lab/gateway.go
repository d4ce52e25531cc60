package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// startGateway makes the physical router of a provider network: it owns the
// next-hop addresses.
func (l *Lab) startGateway(ctx context.Context, c Cloud, p Provider) error {
	if p.Uplink == UplinkNone {
		return nil
	}
	if err := l.makeProviderWire(ctx, c, p); err != nil || p.Uplink != UplinkGateway {
		return err
	}
	n, err := l.Node(c.gatewayNode(p))
	if err != nil {
		return err
	}
	if err := l.shell(ctx, n, quietIPv6+"echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding"); err != nil {
		return err
	}
	wire := p.wire(c)
	if err := ipBatch(ctx, "", fmt.Sprintf("link add eth0 netns %s type veth peer name %s netns %s-%s\n", n.Netns, wire+"-gw", l.prefix, fabricNode)); err != nil {
		return err
	}
	if err := ipBatch(ctx, l.prefix+"-"+fabricNode, fmt.Sprintf("link set %s-gw master %s up\n", wire, wire)); err != nil {
		return err
	}
	// The router's frames enter the datapaths.
	if err := l.shell(ctx, n, c.wholePackets("eth0")); err != nil {
		return err
	}
	v4, v6 := p.NextHops()
	batch := "link set lo up\nlink set eth0 up\n"
	if v4.IsValid() {
		batch += fmt.Sprintf("addr add %s/%d dev eth0\n", v4, p.Subnet4.Bits())
	}
	if v6.IsValid() {
		batch += fmt.Sprintf("addr add %s/%d dev eth0 nodad\n", v6, p.Subnet6.Bits())
	}
	return ipBatch(ctx, n.Netns, batch)
}

// wire is the bridge in the fabric that stands for the provider network's
// physical segment in a cloud.
func (p Provider) wire(c Cloud) string { return "w" + shortID(c.Name + "/" + p.Name)[:8] }

// PhysicalPort is the name of the physical port of a provider network on its
// bridge, for captures.
func (p Provider) PhysicalPort() string { return "phy" + shortID(p.Name)[:8] }

// makeProviderWire joins the provider bridges of the cloud's chassis. A VLAN
// network's ports are access ports of its VLAN: the wire itself is untagged.
func (l *Lab) makeProviderWire(ctx context.Context, c Cloud, p Provider) error {
	fns, wire := l.prefix+"-"+fabricNode, p.wire(c)
	batch := fmt.Sprintf("link add %s type bridge\nlink set %s up\n", wire, wire)
	if err := ipBatch(ctx, fns, batch); err != nil {
		return err
	}
	for i, ch := range c.Chassis {
		n, err := l.Node(ch.Name)
		if err != nil {
			return err
		}
		port := p.PhysicalPort()
		if err := ipBatch(ctx, "", fmt.Sprintf("link add %s netns %s type veth peer name %s%d netns %s\n", port, n.Netns, wire, i, fns)); err != nil {
			return err
		}
		if err := ipBatch(ctx, fns, fmt.Sprintf("link set %s%d master %s up\n", wire, i, wire)); err != nil {
			return err
		}
		if err := l.shell(ctx, n, "set -e; "+c.wholePackets(port)+"ip link set "+port+" up"); err != nil {
			return err
		}
	}
	return nil
}

// writeWrapper puts a program into the node's own bin directory.
func writeWrapper(n Node, name, script string) error {
	return os.WriteFile(filepath.Join(n.Dir, "bin", name), []byte("#!/bin/sh\n"+script+"\n"), 0o755)
}
