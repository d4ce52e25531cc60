package exposure

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
)

// translation is one computation.
type translation struct {
	rows     *ovn.Rows
	cfg      Config
	readings *loadbalancer.Book
	own      ovn.UUID // this node's chassis
	objects  []object
	seen     map[identity]struct{}
	reports  []report
	// routed are the next hops that rows name, by provider switch; gateways those of
	// them that nobody has.
	routed   map[ovn.UUID][]netip.Addr
	gateways map[ovn.UUID][]netip.Addr
	// pending: Northbound rows are to come.
	pending bool
}

// collect finds what has an address to expose, in the order of its right of way.
func collect(rows *ovn.Rows, cfg Config, readings *loadbalancer.Book) *translation {
	t := &translation{rows: rows, cfg: cfg, readings: readings, seen: map[identity]struct{}{}, gateways: map[ovn.UUID][]netip.Addr{}}
	own, ok := rows.OwnChassis()
	if !ok {
		return t
	}
	t.own = own.UUID
	if cfg.Ports {
		t.ports()
	}
	gateways := rows.GatewayPortsAt(t.own)
	t.routed = t.named(gateways)
	if cfg.Gateways {
		for _, g := range gateways {
			t.gatewayPort(g)
		}
	}
	if cfg.FloatingIPs {
		for _, g := range gateways {
			t.centralised(g)
		}
		t.distributed()
	}
	return t
}

// provider is the provider network of a switch, if things on it are to be exposed.
func (t *translation) provider(datapath ovn.UUID, kind, name string) (ovn.ProviderSwitch, bool) {
	s, mapped := t.rows.ProviderSwitchOf(datapath)
	if !mapped {
		if l, there := t.rows.Localnet(datapath); there && t.cfg.network(l.Options["network_name"]) {
			t.fail(kind, name, reason.NoBridgeMapping,
				fmt.Errorf("physical network %q is not in Open_vSwitch external_ids:ovn-bridge-mappings of this node", l.Options["network_name"]))
		}
		return s, false
	}
	if !t.cfg.network(s.Network) {
		return s, false
	}
	if tag := s.Localnet.Tag; tag < 0 || tag > 4094 {
		t.fail(kind, name, reason.BadVLAN, fmt.Errorf("tag %d of localnet port %s: want 1..4094", tag, s.Localnet.LogicalPort))
		return s, false
	}
	return s, true
}

// allowed reads external_ids:sluice-expose of the ports that an object belongs to.
func (t *translation) allowed(kind, name string, ports ...ovn.PortBinding) bool {
	for _, p := range ports {
		switch v := p.ExternalIDs[keyExpose]; v {
		case "", "true":
		case "false":
			t.withhold(kind, name, reason.OptedOut, "external_ids:sluice-expose=false of port "+p.LogicalPort)
			return false
		default:
			t.fail(kind, name, reason.BadExpose, fmt.Errorf("external_ids:%s=%q of port %s: want true or false", keyExpose, v, p.LogicalPort))
			return false
		}
	}
	return true
}

// listed reads external_ids:sluice-next-hops.
func (t *translation) listed(kind string, p ovn.PortBinding) []netip.Addr {
	hops, err := ovn.ParseAddresses(p.ExternalIDs[keyNextHops])
	if err != nil {
		t.fail(kind, p.LogicalPort, reason.BadNextHop, fmt.Errorf("external_ids:%s: %w", keyNextHops, err))
	}
	return hops
}

// gatewayObject is what is the same in all that is behind a gateway port.
func (t *translation) gatewayObject(g ovn.GatewayPort, kind string) (object, []netip.Prefix, bool) {
	s, ok := t.provider(g.Switch.Datapath, kindGateway, g.Binding.LogicalPort)
	if !ok {
		return object{}, nil, false
	}
	column := g.Binding.MAC
	if len(column) == 0 {
		column = g.RouterPort.MAC
	}
	list, errs := ovn.ParseMACColumn(column)
	if len(list)+len(errs) == 0 {
		errs = []error{errors.New("the mac column is empty")}
	}
	if err := errors.Join(errs...); err != nil {
		t.fail(kindGateway, g.Binding.LogicalPort, reason.BadMAC, err)
	}
	if len(list) == 0 {
		return object{}, nil, false
	}
	o := object{kind: kind, mac: list[0].MAC, provider: s, gateway: intent.GatewayCRLRP, port: g.Binding.LogicalPort,
		own: list[0].Prefixes, hops: t.listed(kindGateway, g.RouterPort)}
	if g.Binding.Type == ovn.TypeL3Gateway {
		o.gateway = intent.GatewayL3
	}
	return o, list[0].Prefixes, true
}

// gatewayPort finds a gateway port's own addresses.
func (t *translation) gatewayPort(g ovn.GatewayPort) {
	o, networks, ok := t.gatewayObject(g, kindGateway)
	if !ok || !t.allowed(kindGateway, g.Binding.LogicalPort, g.Switch, g.RouterPort) {
		return
	}
	o.name = g.Binding.LogicalPort
	for _, n := range networks {
		o.addr = n.Addr()
		t.add(o)
	}
}

// add takes an address in, unless nobody asks for it.
func (t *translation) add(o object) {
	if o.addr.IsLinkLocalUnicast() || !t.cfg.address(o.addr) {
		return
	}
	id := identity{o.addr, o.key()}
	if _, there := t.seen[id]; there {
		return // Southbound and Northbound tell the same
	}
	t.seen[id] = struct{}{}
	t.objects = append(t.objects, o)
}
