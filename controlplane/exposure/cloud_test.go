package exposure

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
)

const (
	here  = ovn.UUID("chassis-here")
	there = ovn.UUID("chassis-there")
)

// cloud is a set of rows to change and to load into a store.
type cloud map[string]ovn.Row

func (c cloud) put(rows ...ovn.Row) {
	for _, r := range rows {
		c[string(r.Key())] = r
	}
}

func (c cloud) edit(name string, change func(*ovn.PortBinding)) {
	p := c["pb-"+name].(ovn.PortBinding)
	p.ExternalIDs, p.Options = maps.Clone(p.ExternalIDs), maps.Clone(p.Options)
	if p.ExternalIDs == nil {
		p.ExternalIDs = map[string]string{}
	}
	change(&p)
	c.put(p)
}

func (c cloud) load() *ovn.Rows {
	rows := ovn.NewRows()
	rows.Expose(true)
	var batch []ovn.Change
	for _, id := range slices.Sorted(maps.Keys(c)) {
		batch = append(batch, ovn.Set(c[id]))
	}
	rows.Apply(batch)
	rows.SetHostAddresses(ovn.HostAddresses{"eth0": {netip.MustParseAddr("172.24.0.99")}})
	return rows
}

func pb(name, kind, datapath string, chassis ovn.UUID, mac ...string) ovn.PortBinding {
	return ovn.PortBinding{UUID: ovn.UUID("pb-" + name), LogicalPort: name, Type: kind, Datapath: ovn.UUID(datapath), Chassis: chassis, Up: true, MAC: mac}
}

// sample is a provider network with a VM here and one there, and a router whose
// gateway port is here, with a tenant's VM here.
func sample() cloud {
	c := cloud{}
	options := func(p ovn.PortBinding, kv ...string) ovn.PortBinding {
		p.Options = map[string]string{}
		for i := 0; i < len(kv); i += 2 {
			p.Options[kv[i]] = kv[i+1]
		}
		return p
	}
	gw := "02:00:00:00:00:01 172.24.0.11/16 2001:db8:24::b/64"
	c.put(
		ovn.Chassis{UUID: here, Name: "a1"}, ovn.Chassis{UUID: there, Name: "a2"},
		ovn.OpenvSwitch{UUID: "ovs", ExternalIDs: map[string]string{"system-id": "a1", "ovn-bridge-mappings": "physnet1:br-ex,physnet2:br-two"}},
		ovn.DatapathBinding{UUID: "public", ExternalIDs: map[string]string{"logical-switch": "nb-public"}},
		ovn.DatapathBinding{UUID: "net", ExternalIDs: map[string]string{"logical-switch": "nb-net"}},
		ovn.DatapathBinding{UUID: "router", ExternalIDs: map[string]string{"logical-router": "nb-router"}},
		options(pb("provnet", ovn.TypeLocalnet, "public", "", "unknown"), "network_name", "physnet1"),
		pb("vm", ovn.TypeVIF, "public", here, "02:00:00:00:01:01 172.24.0.50 2001:db8:24::50"),
		pb("far", ovn.TypeVIF, "public", there, "02:00:00:00:01:02 172.24.0.51"),
		pb("inner", ovn.TypeVIF, "net", here, "02:00:00:00:01:03 10.0.0.5"),
		options(pb("cr-gw", ovn.TypeChassisRedirect, "router", here, gw), "distributed-port", "lrp-gw"),
		options(pb("lrp-gw", ovn.TypePatch, "router", "", gw), "peer", "lsp-gw"),
		options(pb("lsp-gw", ovn.TypePatch, "public", "", "router"), "peer", "lrp-gw"),
	)
	c.edit("lsp-gw", func(p *ovn.PortBinding) {
		p.NATAddresses = []string{
			`02:00:00:00:00:01 172.24.0.11 172.24.0.60 is_chassis_resident("cr-gw")`,
			`02:00:00:00:00:61 172.24.0.61 is_chassis_resident("inner")`,
			`02:00:00:00:00:62 172.24.0.62 is_chassis_resident("elsewhere")`,
		}
	})
	return c
}

// northbound adds the router's rows.
func (c cloud) northbound(nats ...ovn.NAT) {
	lr := ovn.LogicalRouter{UUID: "nb-router", Ports: []ovn.UUID{"nb-lrp"}}
	for _, n := range nats {
		lr.NAT = append(lr.NAT, n.UUID)
		c.put(n)
	}
	c.put(lr, ovn.LogicalRouterPort{UUID: "nb-lrp", Name: "lrp-gw", Networks: []string{"172.24.0.11/16", "2001:db8:24::b/64"}})
}
