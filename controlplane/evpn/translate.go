package evpn

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
)

// translation is the work on one router.
type translation struct {
	rows     *ovn.Rows
	cfg      Config
	chassis  ovn.UUID
	nat      natFacts
	known    *knownAddresses
	readings *loadbalancer.Book
	// quiet: what is worth knowing is said where the gateway port is.
	quiet bool
	adv   advertised
	out   Result
}

// translate computes what one router exposes through this node.
func translate(rows *ovn.Rows, router ovn.UUID, cfg Config, known *knownAddresses, readings *loadbalancer.Book) Result {
	t := &translation{rows: rows, cfg: cfg, known: known, readings: readings, out: Result{Router: router}}
	dp, ok := rows.Datapath(router)
	own, here := rows.OwnChassis()
	if !ok || !here || !dp.IsRouter() {
		return t.out
	}
	t.chassis, t.out.Name = own.UUID, dp.Name()
	ports := rows.GatewayPorts(router, own.UUID)
	t.out.Bridges = t.bridges(ports)
	candidates := t.toCome()
	if len(ports)+len(candidates) == 0 {
		return t.out
	}
	t.nat = readNAT(rows, router)
	t.out.Elsewhere = t.elsewhere()
	t.out.Pending, t.out.Unseen = t.nat.pending || t.balancersPending(), switchesPending(rows, router)
	var inherit []map[string]string
	var routerSides []ovn.UUID
	add := func(p ovn.GatewayPort, g GatewayResult, ok bool) {
		if ok {
			t.out.Gateways = append(t.out.Gateways, g)
			// The gateway port's mode is what its interfaces inherit.
			inherit = append(inherit, merged(p.Switch.ExternalIDs, p.RouterPort.ExternalIDs))
			routerSides = append(routerSides, p.RouterPort.UUID)
		}
	}
	for _, p := range ports {
		g, ok := t.gateway(p)
		if ok {
			g.Learner = t.learner(p, g)
		}
		add(p, g, ok)
	}
	for _, p := range candidates {
		g, ok := t.standby(p)
		add(p, g, ok)
	}
	t.quiet = len(ports) == 0
	t.readAdvertised(routerSides)
	t.interfaces(inherit)
	t.advertisedAt()
	t.balancers()
	t.sayLeft()
	sortErrors(t.out.Errors)
	sortNotes(t.out.Notes)
	return t.out
}

// merged keeps the one key that both sides of a port may carry, the switch's
// side first.
func merged(first, second map[string]string) map[string]string {
	for _, m := range []map[string]string{first, second} {
		if v, ok := m[keyAnnounce]; ok {
			return map[string]string{keyAnnounce: v}
		}
	}
	return nil
}

func (t *translation) fail(kind, name, reason string, err error) {
	if t.quiet && kind != kindGateway {
		return
	}
	t.out.Errors = append(t.out.Errors, ObjectError{Kind: kind, Name: name, Reason: reason, Err: err})
}

func (t *translation) faulty(kind, name string, f *fault) bool {
	if f != nil {
		t.fail(kind, name, f.reason, f.err)
	}
	return f != nil
}

func (t *translation) note(kind, name, reason, detail string) {
	if t.quiet {
		return
	}
	t.out.Notes = append(t.out.Notes, Note{Kind: kind, Name: name, Reason: reason, Detail: detail})
}

// exposed reads external_ids:sluice-expose of both sides of a port.
func (t *translation) exposed(kind, name string, exts ...map[string]string) bool {
	for _, ext := range exts {
		yes, f := readExpose(ext)
		if t.faulty(kind, name, f) {
			return false
		}
		if !yes {
			t.note(kind, name, reason.OptedOut, "external_ids:sluice-expose=false")
			return false
		}
	}
	return true
}

// disagree says which places name another VNI than the one that counts.
func (t *translation) disagree(kind, name string, n named) {
	for _, other := range n.others {
		t.note(kind, name, reason.OtherVNI, other)
	}
}

// gateway translates a gateway port; false when it makes no VRF.
func (t *translation) gateway(p ovn.GatewayPort) (GatewayResult, bool) {
	var none GatewayResult
	name := p.Switch.LogicalPort
	a := nameGateway(t.rows, t.cfg, p)
	if !a.present && (t.out.Pending || t.out.Unseen) {
		t.out.Unnamed = true
	}
	if !a.present || standsForVNI(t.rows, p) || t.faulty(kindGateway, name, a.fault) || !t.exposed(kindGateway, name, p.Switch.ExternalIDs, p.RouterPort.ExternalIDs) {
		return none, false
	}
	if _, f := readMode(p.Switch.ExternalIDs, p.RouterPort.ExternalIDs); f != nil {
		t.faulty(kindGateway, name, f)
		return none, false
	}
	t.disagree(kindGateway, name, a)
	key, networks, ok := t.place(p)
	if !ok {
		return none, false
	}
	g := GatewayResult{
		Localnet: p.Localnet.LogicalPort,
		Networks: networks,
		Policy:   t.policy(a.annotation),
		OVNTable: ovnTable(t.rows, p),
		Gateway: intent.Gateway{
			Key: key, VNI: a.vni, Kind: intent.GatewayCRLRP, LogicalPort: p.Binding.LogicalPort,
			MTU: t.mtu(p),
		},
	}
	// A path that cannot be read counts as none.
	var f *fault
	g.Path, f = readPath(p.Switch.ExternalIDs, p.RouterPort.ExternalIDs)
	t.faulty(kindGateway, name, f)
	g.Gateway.ICMPSource4, g.Gateway.ICMPSource6 = t.icmpSources(p, networks)
	if p.Binding.Type == ovn.TypeL3Gateway {
		g.Gateway.Kind = intent.GatewayL3
	}
	for _, n := range networks {
		switch {
		case n.Addr().Is4() && !g.Gateway.Addr4.IsValid():
			g.Gateway.Addr4 = n.Addr()
		case n.Addr().Is6() && !n.Addr().IsLinkLocalUnicast() && !g.Gateway.Addr6.IsValid():
			g.Gateway.Addr6 = n.Addr()
		}
	}
	all := AnswersAll(t.rows, p, t.cfg)
	if all {
		g.Provider = p.Switch.Datapath
	}
	g.Served = t.served(p, key, networks, all)
	g.Own = t.own(p, g, networks)
	if !t.nat.known && !t.nat.pending {
		t.note(kindGateway, p.Binding.LogicalPort, reason.NATUnknown, "NAT rows are in the Northbound database, which this node does not follow")
	}
	return g, true
}

// place finds the bridge, VLAN and MAC of a gateway port, and its networks.
func (t *translation) place(p ovn.GatewayPort) (intent.GatewayKey, []netip.Prefix, bool) {
	var key intent.GatewayKey
	name := p.Binding.LogicalPort
	if !p.HasLocalnet {
		t.fail(kindGateway, name, reason.NoLocalnet, fmt.Errorf("the switch of %s has no localnet port", p.Switch.LogicalPort))
		return key, nil, false
	}
	network := p.Localnet.Options[optionNetwork]
	bridge, ok := t.rows.BridgeOf(network)
	if !ok {
		t.fail(kindGateway, name, reason.NoBridgeMapping,
			fmt.Errorf("physical network %q is not in Open_vSwitch external_ids:ovn-bridge-mappings of this node", network))
		return key, nil, false
	}
	if p.Localnet.Tag < 0 || p.Localnet.Tag > 4094 {
		t.fail(kindGateway, name, reason.BadVLAN, fmt.Errorf("tag %d of localnet port %s: want 1..4094", p.Localnet.Tag, p.Localnet.LogicalPort))
		return key, nil, false
	}
	addresses, errs := ovn.ParseMACColumn(macColumn(p))
	if err := errors.Join(errs...); err != nil {
		t.fail(kindGateway, name, reason.BadMAC, err)
	}
	if len(addresses) == 0 {
		if len(errs) == 0 {
			t.fail(kindGateway, name, reason.BadMAC, errors.New("the mac column is empty"))
		}
		return key, nil, false
	}
	key = intent.GatewayKey{Bridge: intent.BridgeKey(bridge), VLAN: uint16(p.Localnet.Tag), MAC: addresses[0].MAC}
	return key, addresses[0].Prefixes, true
}

// macColumn is Port_Binding.mac of a gateway port.
func macColumn(p ovn.GatewayPort) []string {
	if len(p.Binding.MAC) > 0 {
		return p.Binding.MAC
	}
	return p.RouterPort.MAC
}

func (t *translation) policy(a annotation) Policy {
	p := Policy{ASN: a.asn}
	if p.ASN == 0 {
		p.ASN = t.cfg.ASN
	}
	imports, exports := a.imports, a.exprt
	if c := t.cfg.VRFs[a.vni]; len(c.Import) > 0 {
		imports = c.Import
	}
	if c := t.cfg.VRFs[a.vni]; len(c.Export) > 0 {
		exports = c.Export
	}
	if len(exports) == 0 {
		exports = []intent.RouteTarget{intent.AutoRouteTarget(p.ASN, a.vni)}
	}
	p.Import, p.Export, p.AutoImport = intent.NewRouteTargets(imports...), intent.NewRouteTargets(exports...), len(imports) == 0
	return p
}

// mtu reads options:gateway_mtu of the router port: of the Port_Binding where
// northd copies it, else of the Northbound row.
func (t *translation) mtu(p ovn.GatewayPort) uint16 {
	text := p.RouterPort.Options[optionMTU]
	if text == "" {
		if lrp, ok := t.rows.RouterPort(p.RouterPort.LogicalPort); ok {
			text = lrp.Options[optionMTU]
		}
	}
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n < 68 { // RFC 791: every link carries 68 bytes
		t.fail(kindGateway, p.Binding.LogicalPort, reason.BadMTU, fmt.Errorf("options:gateway_mtu=%q: want 68..65535", text))
		return 0
	}
	return uint16(n)
}
