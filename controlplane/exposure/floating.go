package exposure

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
)

// natAddresses is an element of Port_Binding.nat_addresses: "MAC IP …
// is_chassis_resident("PORT")".
type natAddresses struct {
	mac   intent.MAC
	addrs []netip.Addr
	// resident is the port whose chassis has the addresses. Empty: the chassis of
	// the port itself.
	resident string
}

// parseNATAddresses reads an element; one without addresses is no error.
func parseNATAddresses(element string) (natAddresses, error) {
	var n natAddresses
	text, condition, conditional := strings.Cut(element, "is_chassis_resident(")
	if conditional {
		port, ok := strings.CutSuffix(strings.TrimSpace(condition), ")")
		port, start := strings.CutPrefix(strings.TrimSpace(port), `"`)
		port, end := strings.CutSuffix(port, `"`)
		if !ok || !start || !end || port == "" || strings.ContainsAny(port, `"`) {
			return n, fmt.Errorf("nat_addresses %q: the condition names no port", element)
		}
		n.resident = port
	}
	list, errs := ovn.ParseMACColumn([]string{text})
	if len(errs) > 0 {
		return n, fmt.Errorf("nat_addresses %q: %w", element, errs[0])
	}
	for _, a := range list {
		n.mac = a.MAC
		for _, p := range a.Prefixes {
			n.addrs = append(n.addrs, p.Addr())
		}
	}
	return n, nil
}

// readNATAddresses reads the column of a switch's port.
func (t *translation) readNATAddresses(p ovn.PortBinding) (out []natAddresses) {
	for _, element := range p.NATAddresses {
		n, err := parseNATAddresses(element)
		if err != nil {
			t.fail(kindFloating, p.LogicalPort, reason.BadNATAddresses, err)
			continue
		}
		if len(n.addrs) > 0 {
			out = append(out, n)
		}
	}
	return out
}

// centralised finds the external addresses that are where a gateway port is.
func (t *translation) centralised(g ovn.GatewayPort) {
	o, networks, ok := t.gatewayObject(g, kindFloating)
	if !ok {
		return
	}
	vips := t.balanced(g.Binding.Datapath)
	external := func(a netip.Addr, mac intent.MAC) {
		isOwn := slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Addr() == a })
		switch {
		case isOwn || !t.allowed(kindFloating, a.String(), g.Switch, g.RouterPort):
		case vips.silent(a):
			t.withhold(kindFloating, a.String(), reason.NoLiveBackend, "no backend of a VIP with the address is there and answers probes")
		default:
			o.name, o.addr, o.mac = a.String(), a, mac
			t.add(o)
		}
	}
	mac := o.mac
	for _, n := range t.readNATAddresses(g.Switch) {
		if n.resident != "" && n.resident != g.Binding.LogicalPort {
			continue
		}
		for _, a := range n.addrs {
			external(a, n.mac)
		}
	}
	nats, known := t.rows.NATOf(g.Binding.Datapath)
	if !known {
		t.pending = t.pending || t.rows.ExpectsNB()
		return
	}
	for _, a := range vips.on(networks) {
		external(a, mac)
	}
	alone := t.alone(g)
	lrp, _ := t.rows.RouterPort(g.RouterPort.LogicalPort)
	for _, n := range nats {
		distributed := n.LogicalPort != "" && n.ExternalMAC != "" && g.Binding.Type == ovn.TypeChassisRedirect
		a, err := netip.ParseAddr(n.ExternalIP)
		// The external address of an SNAT row may be a prefix from which OVN does not
		// choose.
		if err != nil || distributed || a.Zone() != "" {
			continue
		}
		switch a = a.Unmap(); {
		case n.GatewayPort != "":
			if g.Binding.Type == ovn.TypeChassisRedirect && n.GatewayPort == lrp.UUID {
				external(a, mac)
			}
		case alone || contain(networks, a):
			external(a, mac)
		case t.homeless(g, a):
			t.fail(kindFloating, a.String(), reason.NoGatewayPort, errors.New("the router has several gateway ports, none of them is on a network of the address, and NAT.gateway_port names none: OVN leaves the NAT row out"))
		}
	}
}

func contain(networks []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(a) })
}

// homeless tells that an external address is on a network of none of the router's
// distributed gateway ports.
func (t *translation) homeless(g ovn.GatewayPort, a netip.Addr) bool {
	if g.Binding.Type != ovn.TypeChassisRedirect {
		return false
	}
	for _, p := range t.rows.PortsOn(g.Binding.Datapath) {
		if p.Type != ovn.TypeChassisRedirect {
			continue
		}
		if side, ok := t.rows.Port(p.Options["distributed-port"]); ok && len(p.MAC) == 0 {
			p = side
		}
		list, errs := ovn.ParseMACColumn(p.MAC)
		if len(errs) > 0 {
			return false // what it would be on is not known
		}
		for _, m := range list {
			if contain(m.Prefixes, a) {
				return false
			}
		}
	}
	return true
}

// alone tells whether a gateway port is the only one of its router: then all external
// addresses of the router belong to it, else those on its networks.
func (t *translation) alone(g ovn.GatewayPort) bool {
	for _, p := range t.rows.PortsOn(g.Binding.Datapath) {
		if p.Type == g.Binding.Type && p.UUID != g.Binding.UUID {
			return false
		}
	}
	return true
}

// distributed finds the floating IPs of the VMs here.
func (t *translation) distributed() {
	for _, s := range t.rows.ProviderSwitches() {
		if !t.cfg.network(s.Network) {
			continue
		}
		for _, side := range t.rows.RouterSides(s.Datapath) {
			for _, n := range t.readNATAddresses(side) {
				vm, ok := t.rows.Port(n.resident)
				if !ok || vm.Type != ovn.TypeVIF && vm.Type != ovn.TypeVirtual || vm.Chassis != t.own {
					continue
				}
				for _, a := range n.addrs {
					t.floating(a, n.mac, s, side, vm)
				}
			}
		}
	}
	for _, vm := range t.rows.VMs(t.own) {
		for _, f := range t.rows.FloatingIPs(vm.LogicalPort) {
			t.northbound(f, vm)
		}
	}
}

// northbound takes in a floating IP of a VM here that a NAT row has.
func (t *translation) northbound(f ovn.FloatingIP, vm ovn.PortBinding) {
	a, err := netip.ParseAddr(f.NAT.ExternalIP)
	if err != nil || a.Zone() != "" || f.NAT.Type != "dnat_and_snat" || f.NAT.ExternalMAC == "" {
		return
	}
	a = a.Unmap()
	mac, err := intent.ParseMAC(f.NAT.ExternalMAC)
	if err != nil || mac.IsZero() || mac[0]&1 != 0 {
		t.fail(kindFloating, a.String(), reason.BadMAC, fmt.Errorf("NAT.external_mac %q is no unicast Ethernet address", f.NAT.ExternalMAC))
		return
	}
	var best ovn.ProviderSwitch
	var side ovn.PortBinding
	certain := false
	for _, lrp := range f.RouterPorts {
		if f.NAT.GatewayPort != "" && f.NAT.GatewayPort != lrp.UUID {
			continue
		}
		p, ok := t.rows.PeerNaming(lrp.Name)
		if !ok || p.Type != ovn.TypePatch {
			continue // a gateway router has no distributed floating IPs
		}
		s, ok := t.rows.ProviderSwitchOf(p.Datapath)
		if !ok || !t.cfg.network(s.Network) {
			continue
		}
		on := slices.ContainsFunc(lrp.Networks, func(w string) bool {
			n, err := netip.ParsePrefix(w)
			return err == nil && n.Contains(a)
		})
		if on && !certain || best.Bridge == "" {
			best, side, certain = s, p, on
		}
	}
	if best.Bridge != "" {
		t.floating(a, mac, best, side, vm)
	}
}

// floating takes in a distributed floating IP.
func (t *translation) floating(a netip.Addr, mac intent.MAC, s ovn.ProviderSwitch, side, vm ovn.PortBinding) {
	name := a.String()
	if _, ok := t.provider(s.Datapath, kindFloating, name); !ok || !t.allowed(kindFloating, name, side, vm) {
		return
	}
	if _, ok := t.holder(kindFloating, name, vm); !ok {
		return
	}
	t.add(object{kind: kindFloating, name: name, addr: a, mac: mac, provider: s, gateway: intent.GatewayNAT, port: vm.LogicalPort})
}
