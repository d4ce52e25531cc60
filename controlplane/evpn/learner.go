package evpn

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/reason"
)

// What OVN's dynamic routing has beside its switch.
const (
	// optionLearnPort is on the Port_Bindings of a router with dynamic routing: the
	// name of a port, by whose device alone routes are learned. keyLearnPorts, in
	// Open_vSwitch external_ids, says what device that is on this node.
	optionLearnPort = "dynamic-routing-port-name"
	keyLearnPorts   = "dynamic-routing-port-mapping"
	// optionNoLearning keeps a port from learning (OVN 26.03).
	optionNoLearning = "dynamic-routing-no-learning"
)

// learner tells how routes get into OVN by a gateway port that is here; the zero value
// when they do not.
func (t *translation) learner(p ovn.GatewayPort, g GatewayResult) intent.Learner {
	if !t.cfg.Learn || g.OVNTable == 0 || !t.isLearning(p.Binding) {
		return intent.Learner{}
	}
	name := p.Binding.LogicalPort
	if !intent.CanLearn(g.OVNTable) {
		t.fail(kindGateway, name, reason.OVNTable, fmt.Errorf("ovn-controller reads routing table %d for the router, which is the kernel's own or one that a VRF of Sluice may have: Sluice writes no route there", g.OVNTable))
		return intent.Learner{}
	}
	if others := t.learnsElsewhere(p); len(others) > 0 {
		t.fail(kindGateway, name, reason.LearnPorts, fmt.Errorf("ovn-controller would learn routes by %s, too, where their next hop is not: options:%s of the router's ports has to leave only this port", strings.Join(others, ", "), optionLearnPort))
		return intent.Learner{}
	}
	if !t.learnsBy(p.Binding) {
		t.fail(kindGateway, name, reason.LearnPorts, fmt.Errorf("options:%s=%s of the port leaves out what is learned by device %s: Open_vSwitch external_ids:%s does not name it",
			optionLearnPort, p.Binding.Options[optionLearnPort], intent.LearnedDevice, keyLearnPorts))
		return intent.Learner{}
	}
	addresses, _ := ovn.ParseMACColumn(macColumn(p)) // a bad element is reported by place
	l := intent.Learner{Gateway: g.Gateway.Key, Port: name, VNI: g.Gateway.VNI, Table: g.OVNTable, Networks: t.networks()}
	for _, v4 := range []bool{true, false} {
		networks := slices.DeleteFunc(slices.Clone(addresses[0].Prefixes), func(n netip.Prefix) bool { return n.Addr().Is4() != v4 })
		if len(networks) == 0 {
			continue
		}
		via, ok := t.learnVia(g, networks)
		switch {
		case !ok:
			t.fail(kindGateway, name, reason.LearnNextHop, fmt.Errorf("Sluice serves no next hop on %s", intent.NewPrefixSet(networks...)))
		case v4:
			l.Via4 = via
		default:
			l.Via6 = via
		}
	}
	if !l.Via4.IsValid() && !l.Via6.IsValid() {
		return intent.Learner{}
	}
	return l
}

// isLearning tells whether ovn-controller takes routes in by a port of this chassis.
// Of a distributed gateway port the chassisredirect port has the options.
func (t *translation) isLearning(p ovn.PortBinding) bool {
	return ovsdb.Bool(p.Options, optionDynamic) && !ovsdb.Bool(p.Options, optionNoLearning) &&
		p.Chassis == t.chassis && (p.Type == ovn.TypeChassisRedirect || p.Type == ovn.TypeL3Gateway)
}

// learnsBy tells whether a port takes in what is learned by Sluice's device.
func (t *translation) learnsBy(p ovn.PortBinding) bool {
	name := p.Options[optionLearnPort]
	return name == "" || deviceOf(t.rows.External(keyLearnPorts), name) == intent.LearnedDevice
}

// learnsElsewhere lists the other ports of the router that would take in what is
// meant for this one. From 25.03.1 on a port that names a device keeps those from
// learning that name none.
func (t *translation) learnsElsewhere(p ovn.GatewayPort) (out []string) {
	for _, o := range t.rows.PortsOn(p.Binding.Datapath) {
		if o.UUID == p.Binding.UUID || !t.isLearning(o) {
			continue
		}
		if t.learnsBy(o) || p.Binding.Options[optionLearnPort] == "" {
			out = append(out, o.LogicalPort)
		}
	}
	return out
}

// deviceOf reads "PORT=DEVICE,…".
func deviceOf(mapping, port string) string {
	for entry := range strings.SplitSeq(mapping, ",") {
		if name, device, ok := strings.Cut(strings.TrimSpace(entry), "="); ok && name == port {
			return device
		}
	}
	return ""
}

// networks are those of all the router's ports. A learned route to a part of one would
// come before it: the router would send its own VMs' packets out.
func (t *translation) networks() intent.PrefixSet {
	var out []netip.Prefix
	for _, p := range t.rows.PortsOn(t.out.Router) {
		if p.Type != ovn.TypePatch && p.Type != ovn.TypeL3Gateway {
			continue
		}
		out = append(out, networksOf(p.MAC)...)
	}
	return intent.NewPrefixSet(out...)
}

// learnVia picks the next hop of learned routes among those that are served: one that
// is listed, else the highest address of a network that nobody is known to have. A
// link-local one comes last of its kind. The Northbound database has no part in it: the
// next hop is the same before its rows are there, as after a restart.
func (t *translation) learnVia(g GatewayResult, networks []netip.Prefix) (netip.Addr, bool) {
	good := func(a netip.Addr) bool {
		return a.Is4() == networks[0].Addr().Is4() && onLink(a, networks) && !isOwn(a, networks) && t.answered(a, g)
	}
	var hops []netip.Addr
	for _, s := range g.Served {
		if s.Answer && s.Key.Prefix.IsSingleIP() {
			hops = append(hops, s.Key.Prefix.Addr())
		}
	}
	for _, n := range networks {
		hops = append(hops, highest(n)...)
	}
	if i := slices.IndexFunc(hops, good); i >= 0 {
		return hops[i], true
	}
	return netip.Addr{}, false
}

// mostTried bounds the addresses of a network that are looked at.
const mostTried = 64

// highest are the last addresses of a network, downwards, without IPv4's broadcast
// address (RFC 3021 has none on a /31).
func highest(n netip.Prefix) []netip.Addr {
	b := n.Masked().Addr().AsSlice()
	for i := n.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	if a.Is4() && n.Bits() < 31 {
		a = a.Prev()
	}
	var out []netip.Addr
	for ; len(out) < mostTried && a.IsValid() && n.Contains(a); a = a.Prev() {
		if a != n.Masked().Addr() || n.Bits() >= a.BitLen()-1 {
			out = append(out, a)
		}
	}
	return out
}
