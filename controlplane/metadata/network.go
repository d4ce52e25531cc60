package metadata

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

const (
	keyDeviceID  = "neutron:device_id"
	keyProjectID = "neutron:project_id"
	keyMTU       = "neutron:mtu"
	keyCIDRs     = "neutron:cidrs"
)

// network is a switch with ports here.
type network struct {
	name string
	// port is its metadata port; hasPort is false when there is none, and mac zero when
	// that has no address.
	port    ovn.PortBinding
	hasPort bool
	mac     intent.MAC
	// conflict: another switch here has its name already.
	conflict bool
	// addresses are the addresses of the network's ports on this node.
	addresses []netip.Addr
	// subnets are the IPv4 ones of the metadata port in which there is a VM, with the
	// port's own address.
	subnets []netip.Prefix
	// users are the ports that are served by the namespace.
	users []string
}

// network finds a port's switch; false while its row is not there.
func (b *build) network(p ovn.PortBinding) (*network, bool) {
	if n, done := b.networks[p.Datapath]; done {
		return n, n != nil
	}
	row, ok := b.rows.Datapath(p.Datapath)
	name := row.Network()
	if !ok && b.early {
		name = p.Network()
		ok = name != ""
	}
	if !ok {
		b.networks[p.Datapath] = nil
		return nil, false
	}
	n := &network{name: name}
	n.port, n.hasPort = b.rows.MetadataPort(p.Datapath)
	b.networks[p.Datapath] = n
	return n, true
}

// settle decides what depends on all ports here.
func (b *build) settle(datapath ovn.UUID, n *network, taken map[string]bool) {
	if taken[n.name] {
		// Switches of OVN need no names of their own. Requests of one must not be taken
		// for the other's.
		row, _ := b.rows.Datapath(datapath)
		b.complain(string(row.NBUUID()), status.Error, reason.NetworkConflict,
			fmt.Sprintf("another switch with ports here is named %s, too; this one is named by its UUID and has no namespace", n.name))
		n.name, n.conflict = string(row.NBUUID()), true
		b.conflict = true
	}
	taken[n.name] = true
	if !n.hasPort {
		return
	}
	list, errs := ovn.ParseMACColumn(n.port.MAC[:min(1, len(n.port.MAC))])
	switch {
	case len(list) > 0:
		n.mac = list[0].MAC
	case len(errs) > 0:
		b.complain(n.name, status.Error, reason.BadMAC, fmt.Sprintf("metadata port %s: %v", n.port.LogicalPort, errs[0]))
	default:
		b.complain(n.name, status.Error, reason.BadMAC, fmt.Sprintf("metadata port %s has no address in its column mac", n.port.LogicalPort))
	}
	cidrs, err := ovn.ParseCIDRs(n.port.ExternalIDs[keyCIDRs])
	if err != nil {
		b.complain(n.name, status.Error, reason.BadCIDRs, fmt.Sprintf("external_ids:%s of metadata port %s: %v", keyCIDRs, n.port.LogicalPort, err))
	}
	for _, c := range cidrs {
		if c.Addr().Is4() && n.has(c.Contains) {
			n.subnets = append(n.subnets, c)
		}
	}
}

func (n *network) has(is func(netip.Addr) bool) bool {
	for _, a := range n.addresses {
		if is(a) {
			return true
		}
	}
	return false
}

// unusable says why a port cannot be served by the network's namespace; "": it can.
func (n *network) unusable() string {
	switch {
	case n.conflict:
		return "another switch with ports here has the same name"
	case !n.hasPort:
		return "network " + n.name + " has no metadata port in OVN (a localport with neutron:device_id=ovnmeta-" + n.name + ")"
	case n.mac.IsZero():
		return "metadata port " + n.port.LogicalPort + " has no address"
	case len(n.addresses) == 0:
		return "no port of network " + n.name + " here has an address"
	}
	return ""
}

// answers tells whether the namespace has a way back to an address.
func (n *network) answers(a netip.Addr) bool {
	if a.Is6() {
		return true
	}
	for _, s := range n.subnets {
		if s.Contains(a) {
			return true
		}
	}
	return false
}

// row is the namespace of a network.
func (b *build) row(n *network) intent.MetadataNetwork {
	bridge := b.rows.IntegrationBridge()
	out := intent.MetadataNetwork{
		Network: n.name, Port: n.port.LogicalPort, MAC: n.mac,
		Addresses: intent.NewPrefixSet(n.subnets...), IPv6: n.has(netip.Addr.Is6),
		Bridge: bridge, Userspace: b.rows.Userspace(bridge),
	}
	out.Neighbours = b.neighbours(n, out.IPv6)
	if text := strings.TrimSpace(n.port.ExternalIDs[keyMTU]); text != "" {
		mtu, err := strconv.ParseUint(text, 10, 16)
		switch {
		case err != nil || mtu != 0 && mtu < 68:
			b.complain(n.name, status.Error, reason.BadMTU, fmt.Sprintf("external_ids:%s=%q of metadata port %s: want a number 68..65535", keyMTU, text, n.port.LogicalPort))
		default:
			out.MTU = uint16(mtu)
		}
	}
	return out
}

// neighbours are the addresses of all ports of a network here, whichever way they are served,
// as far as answers of its namespace go there: of IPv4 those in its subnets, of IPv6 the
// link-local ones, of which OVN knows none, and some versions let no answer of a VM pass.
// An answer to one of them goes to its port, whoever else says to have the address. One that
// two ports have is left to be asked for: requests from there are nobody's.
func (b *build) neighbours(n *network, six bool) intent.PortAddressSet {
	type holder struct {
		port *port
		mac  intent.MAC
	}
	holders := map[netip.Addr]holder{}
	hold := func(p *port, a netip.Addr, m intent.MAC) {
		switch other, held := holders[a]; {
		case !held:
			holders[a] = holder{p, m}
		case other.port != p:
			holders[a] = holder{}
		}
	}
	for _, p := range b.ports {
		if p.network != n {
			continue
		}
		for _, g := range p.addresses {
			if g.Addr.Is4() && n.answers(g.Addr) || six && g.Addr.Is6() && g.Addr.IsLinkLocalUnicast() {
				hold(p, g.Addr, g.MAC)
			}
			if six {
				hold(p, g.MAC.LinkLocal(), g.MAC)
			}
		}
	}
	var out []intent.PortAddress
	for a, h := range holders {
		if !h.mac.IsZero() {
			out = append(out, intent.PortAddress{MAC: h.mac, Addr: a})
		}
	}
	return intent.NewPortAddressSet(out...)
}

func (b *build) complain(network string, state status.State, why, detail string) {
	b.reports = append(b.reports, status.Object{Kind: kindNetwork, Key: network, State: state, Reason: why, Error: detail})
}
