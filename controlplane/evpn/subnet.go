package evpn

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/reason"
)

// interfaces finds the exposed subnets of the router and puts each behind the
// first gateway port with its VNI. inherit is the mode each gateway port states.
func (t *translation) interfaces(inherit []map[string]string) {
	for _, i := range t.rows.Interfaces(t.out.Router) {
		name := i.Switch.LogicalPort
		a, rows := nameInterface(t.rows, i), t.adv.through[i.RouterPort.UUID]
		if !a.present && len(rows) == 0 || t.faulty(kindInterface, name, a.fault) ||
			!t.exposed(kindInterface, name, i.Switch.ExternalIDs, i.RouterPort.ExternalIDs) || t.onProvider(i) {
			continue
		}
		t.disagree(kindInterface, name, a)
		var list []Subnet
		at, ok := t.gatewayFor(name, a, rows)
		if ok && a.present {
			var mode Mode
			if mode, ok = t.mode(i, inherit[at]); ok {
				list = t.subnets(i, mode, func(netip.Prefix) bool { return true })
			}
		} else if ok {
			list = t.subnets(i, 0, func(n netip.Prefix) bool { return holds(n, rows) })
		}
		if ok {
			list = t.advertisedBehind(i, rows, at, list)
			g := &t.out.Gateways[at]
			g.Subnets = append(g.Subnets, list...)
		}
	}
}

// onProvider tells whether an interface is on a provider network, whose hosts others reach
// without the router, and nobody says that they are to be exposed all the same.
func (t *translation) onProvider(i ovn.RouterInterface) bool {
	if _, provider := t.rows.Localnet(i.Switch.Datapath); !provider {
		return false
	}
	if i.Switch.ExternalIDs[keyExpose] == "true" || i.RouterPort.ExternalIDs[keyExpose] == "true" {
		return false
	}
	t.note(kindInterface, i.Switch.LogicalPort, reason.ProviderNetwork, "its switch has a localnet port, and external_ids:sluice-expose is not true")
	return true
}

// gatewayFor is the place of the gateway port for an interface: the one with the VNI
// that it names, or with the router's only VNI where it names none.
func (t *translation) gatewayFor(name string, a named, rows []advertisement) (int, bool) {
	if !a.present {
		return t.onlyGateway(name, rows)
	}
	at := slices.IndexFunc(t.out.Gateways, func(g GatewayResult) bool { return g.Gateway.VNI == a.vni })
	if at < 0 {
		t.stranded(name, a.annotation)
	}
	return at, at >= 0
}

// mode is what BGP says of an interface's subnets.
func (t *translation) mode(i ovn.RouterInterface, inherit map[string]string) (Mode, bool) {
	mode, f := readMode(i.Switch.ExternalIDs, i.RouterPort.ExternalIDs, inherit)
	if mode == 0 {
		mode = t.cfg.announce()
	}
	return mode, !t.faulty(kindInterface, i.Switch.LogicalPort, f)
}

// stranded says why an annotated interface has no gateway port.
func (t *translation) stranded(name string, a annotation) {
	if len(t.out.Gateways) == 0 {
		detail := "no gateway port of the router on this node can be used: none has a usable VNI, or it has an error of its own"
		if _, seen := t.rows.Router(t.out.Router); !seen {
			detail += "; one that the provider network's Logical_Switch or the router's options name can only be seen with ovn.nb"
		}
		t.note(kindInterface, name, reason.NoGateway, detail)
		return
	}
	t.fail(kindInterface, name, reason.VNIMismatch,
		fmt.Errorf("the port names VNI %d and no gateway port of the router on this node does (%s names %d)",
			a.vni, t.out.Gateways[0].Gateway.LogicalPort, t.out.Gateways[0].Gateway.VNI))
}

// subnets lists the exposed subnets of one interface, with their hosts.
func (t *translation) subnets(i ovn.RouterInterface, mode Mode, wanted func(netip.Prefix) bool) []Subnet {
	name := i.Switch.LogicalPort
	if t.nat.pending {
		t.note(kindInterface, name, reason.NATPending, "withheld until the Northbound database has answered")
		return nil
	}
	if !t.nat.known && t.cfg.HoldNATUnknown {
		t.note(kindInterface, name, reason.NATUnknown, "withheld by evpn.natUnknown: hold")
		return nil
	}
	addresses, errs := ovn.ParseMACColumn(i.RouterPort.MAC)
	if err := errors.Join(errs...); err != nil {
		t.fail(kindInterface, name, reason.BadMAC, err)
	}
	var out []Subnet
	for _, a := range addresses {
		for _, n := range a.Prefixes {
			p := n.Masked()
			if p.Addr().IsLinkLocalUnicast() || p.Bits() == 0 || !wanted(p) || slices.ContainsFunc(out, func(s Subnet) bool { return s.Prefix == p }) {
				continue
			}
			s := Subnet{Object: name, Prefix: p, Announce: mode&AnnounceSubnets != 0}
			if !t.cfg.AnnounceNAT {
				if t.nat.covers(p) {
					t.note(kindInterface, name, reason.NAT, fmt.Sprintf("a NAT row of the router translates %s", p))
					continue
				}
				s.Blocks = t.nat.within(p)
			}
			out = append(out, s)
		}
	}
	if len(out) > 0 {
		t.hosts(i.Switch.Datapath, mode, out)
	}
	return out
}

// hosts fills in the hosts of a switch's exposed subnets.
func (t *translation) hosts(datapath ovn.UUID, mode Mode, subnets []Subnet) {
	for _, p := range t.rows.PortsOn(datapath) {
		if p.Type != ovn.TypeVIF && p.Type != ovn.TypeVirtual {
			continue
		}
		block := false
		if yes, f := readExpose(p.ExternalIDs); f != nil || !yes {
			t.faulty(kindHost, p.LogicalPort, f)
			block = true
		}
		own, f := readMode(p.ExternalIDs)
		t.faulty(kindHost, p.LogicalPort, f)
		if own == 0 {
			own = mode
		}
		live := p.Chassis != "" || p.Up
		announce := live && f == nil && own&AnnounceHosts != 0
		if !announce && !block {
			continue
		}
		for _, a := range t.addresses(p) {
			t.locate(p.LogicalPort, a, block, subnets)
		}
	}
}

// locate puts one address of a port into the subnet that contains it.
func (t *translation) locate(port string, a netip.Addr, block bool, subnets []Subnet) {
	for k := range subnets {
		s := &subnets[k]
		if !s.Prefix.Contains(a) {
			continue
		}
		if slices.ContainsFunc(s.Blocks, func(b netip.Prefix) bool { return b.Contains(a) }) {
			t.note(kindHost, port, reason.NAT, fmt.Sprintf("a NAT row of the router translates %s", a))
			return
		}
		s.Hosts = append(s.Hosts, Host{Object: port, Addr: a, Block: block})
		return
	}
}

// addresses lists a port's addresses: those of the mac column, or, where it has
// none (port security off: "unknown"), those of neutron:cidrs.
func (t *translation) addresses(p ovn.PortBinding) []netip.Addr {
	list, errs := ovn.ParseMACColumn(p.MAC)
	var prefixes []netip.Prefix
	for _, a := range list {
		prefixes = append(prefixes, a.Prefixes...)
	}
	if err := errors.Join(errs...); err != nil {
		t.fail(kindHost, p.LogicalPort, reason.BadMAC, err)
	}
	if len(prefixes) == 0 {
		var err error
		if prefixes, err = ovn.ParseCIDRs(p.ExternalIDs[keyCIDRs]); err != nil {
			t.fail(kindHost, p.LogicalPort, reason.BadCIDRs, fmt.Errorf("external_ids:%s: %w", keyCIDRs, err))
		}
	}
	var out []netip.Addr
	for _, n := range prefixes {
		if a := n.Addr(); !a.IsLinkLocalUnicast() && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}
