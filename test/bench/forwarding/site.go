package forwarding

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/pkg/netns"
)

// site is a node between two ends. The far ends' devices have equal names in all
// sites.
type site struct {
	name   string
	fabric space // the far VTEP, with the device "underlay"
	node   space // the node, with "underlay" and "sluice0"
	ovn    space // what is behind the gateway port, with "sluice0-ovs"
	host   space // has the address behind the gateway port: ovn, or a host behind a switch in ovn
	device string
	// undo is what down does, in reverse order.
	undo []func() error
}

// forwarder makes the node of a site: sluice0 with a peer of any kind in the
// namespace ovn, and all that is between it and the device "underlay".
type forwarder func(ctx context.Context, s *site, offloads bool) error

// space is a network namespace.
type space struct{ name string }

func (n space) do(fn func() error) error { return netns.Named(n.name).Do(fn) }

// ip runs a batch of ip(8).
func (n space) ip(ctx context.Context, batch string) error {
	cmd := exec.CommandContext(ctx, "ip", "-n", n.name, "-batch", "-")
	cmd.Stdin = strings.NewReader(batch)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip -batch in %s: %w: %s", n.name, err, out)
	}
	return nil
}

// run runs a shell script.
func (n space) run(ctx context.Context, script string) error {
	if out, err := n.command(ctx, "sh", "-ec", script).CombinedOutput(); err != nil {
		return fmt.Errorf("%s in %s: %w: %s", script, n.name, err, out)
	}
	return nil
}

func (n space) command(ctx context.Context, argv ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "nsenter", append([]string{"--net=/run/netns/" + n.name, "--"}, argv...)...)
}

// ifindex of a device.
func (n space) ifindex(device string) (index int, err error) {
	err = netns.Named(n.name).Netlink(func(h *netlink.Handle) error {
		l, err := h.LinkByName(device)
		if err != nil {
			return fmt.Errorf("device %s in %s: %w", device, n.name, err)
		}
		index = l.Attrs().Index
		return nil
	})
	return index, err
}

// up makes a site. What an error leaves behind, down removes.
func (s *site) up(ctx context.Context, node forwarder, withOVS bool) error {
	for _, n := range []struct {
		to   *space
		kind string
	}{{&s.fabric, "fabric"}, {&s.node, "node"}, {&s.ovn, "ovn"}, {&s.host, "host"}} {
		if n.kind == "host" && !withOVS {
			s.host, s.device = s.ovn, "sluice0-ovs"
			continue
		}
		if err := s.namespace(ctx, n.to, n.kind); err != nil {
			return err
		}
	}
	if err := s.underlay(ctx); err != nil {
		return err
	}
	if err := node(ctx, s, !withOVS); err != nil {
		return err
	}
	if withOVS {
		if err := s.openVSwitch(ctx); err != nil {
			return err
		}
	}
	return s.ends(ctx)
}

func (s *site) namespace(ctx context.Context, to *space, kind string) error {
	to.name = fmt.Sprintf("slfw%d-%s-%s", os.Getpid(), s.name, kind)
	if out, err := exec.CommandContext(ctx, "ip", "netns", "add", to.name).CombinedOutput(); err != nil {
		return fmt.Errorf("ip netns add: %w: %s", err, out)
	}
	name := to.name
	s.undo = append(s.undo, func() error {
		if out, err := exec.Command("ip", "netns", "del", name).CombinedOutput(); err != nil {
			return fmt.Errorf("ip netns del: %w: %s", err, out)
		}
		return nil
	})
	return to.run(ctx, `for d in all default; do echo 0 >/proc/sys/net/ipv4/conf/$d/rp_filter; echo 0 >/proc/sys/net/ipv6/conf/$d/accept_dad; done
		ip link set lo up`)
}

// down removes the site.
func (s *site) down() (err error) {
	for i := len(s.undo) - 1; i >= 0; i-- {
		err = errors.Join(err, s.undo[i]())
	}
	s.undo = nil
	return err
}

// underlay joins the node and the far VTEP. Neighbours are permanent everywhere:
// no resolution is in what is measured.
func (s *site) underlay(ctx context.Context) error {
	err := s.node.ip(ctx, fmt.Sprintf("link add underlay address %s mtu %d type veth peer name underlay address %s mtu %d netns %s",
		nodeLinkMAC, underlayIP, farLinkMAC, underlayIP, s.fabric.name))
	if err != nil {
		return err
	}
	for _, end := range []struct {
		in        space
		own, peer string
		mac       fmt.Stringer
	}{{s.node, nodeVTEP.String(), farVTEP.String(), farLinkMAC}, {s.fabric, farVTEP.String(), nodeVTEP.String(), nodeLinkMAC}} {
		err := end.in.ip(ctx, fmt.Sprintf("addr add %s/24 dev underlay\nlink set underlay up\nneigh replace %s lladdr %s dev underlay nud permanent\n",
			end.own, end.peer, end.mac))
		if err != nil {
			return err
		}
	}
	return nil
}

// ends gives the two inner hosts their addresses and routes.
func (s *site) ends(ctx context.Context) error {
	fabric := fmt.Sprintf("link add vx address %s mtu %d type vxlan id %d local %s remote %s dstport %d nolearning noudpcsum\nlink set vx up\n",
		farMAC, innerMTU, vni, farVTEP, nodeVTEP, vxlanPort)
	host := fmt.Sprintf("link set %s down\nlink set %s address %s\nlink set %s arp on\nlink set %s mtu %d\nlink set %s up\n",
		s.device, s.device, gatewayMAC, s.device, s.device, innerMTU, s.device)
	for _, f := range families {
		fabric += endOf(f, "vx", f.far, f.near, f.vtep, routerMAC)
		host += endOf(f, s.device, f.near, f.far, f.hop, nextHopMAC)
	}
	if err := s.fabric.ip(ctx, fabric); err != nil {
		return err
	}
	return s.host.ip(ctx, host)
}

// endOf is the address of an end, and its route to the other one.
func endOf(f family, device string, own, other, hop fmt.Stringer, mac fmt.Stringer) string {
	return fmt.Sprintf("addr add %s dev %s nodad\nneigh replace %s lladdr %s dev %s nud permanent\nroute add %s via %s dev %s onlink src %s\n",
		own, device, hop, mac, device, other, hop, device, own)
}
