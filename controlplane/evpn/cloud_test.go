package evpn

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// cloud is a set of rows to change and to load into a store.
type cloud map[string]ovn.Row

func (c cloud) put(rows ...ovn.Row) cloud {
	for _, r := range rows {
		c[string(r.Key())] = r
	}
	return c
}

// edit changes one Port_Binding.
func (c cloud) edit(name string, change func(*ovn.PortBinding)) cloud {
	p := c["pb-"+name].(ovn.PortBinding)
	p.ExternalIDs, p.Options = maps.Clone(p.ExternalIDs), maps.Clone(p.Options)
	if p.ExternalIDs == nil {
		p.ExternalIDs = map[string]string{}
	}
	change(&p)
	c["pb-"+name] = p
	return c
}

func (c cloud) load() *ovn.Rows {
	rows := ovn.NewRows()
	var batch []ovn.Change
	for _, id := range slices.Sorted(maps.Keys(c)) {
		batch = append(batch, ovn.Set(c[id]))
	}
	rows.Apply(batch)
	return rows
}

func pb(name, kind, datapath string, mac ...string) ovn.PortBinding {
	return ovn.PortBinding{UUID: ovn.UUID("pb-" + name), LogicalPort: name, Type: kind, Datapath: ovn.UUID(datapath), MAC: mac}
}

const (
	here  = ovn.UUID("chassis-here")
	there = ovn.UUID("chassis-there")
)

// node is this node: two bridges, br-ex with a physical port.
func node(physical bool) cloud {
	c := cloud{}.put(
		ovn.Chassis{UUID: here, Name: "a1"},
		ovn.OpenvSwitch{UUID: "ovs", ExternalIDs: map[string]string{"system-id": "a1", "ovn-bridge-mappings": "physnet1:br-ex"}},
		ovn.Port{UUID: "port-br-ex", Name: "br-ex"},
		ovn.Port{UUID: "port-patch", Name: "patch-provnet-to-br-int", ExternalIDs: map[string]string{"ovn-localnet-port": "provnet"}},
		ovn.Port{UUID: "port-ours", Name: "sluice0-ovs"},
		ovn.Port{UUID: "port-eth", Name: "eth1"},
		ovn.DatapathBinding{UUID: "ls-public", ExternalIDs: map[string]string{"logical-switch": "nb-public", "name": "public"}},
	)
	br := ovn.Bridge{UUID: "br-ex", Name: "br-ex", Ports: []ovn.UUID{"port-br-ex", "port-patch", "port-ours"}}
	if physical {
		br.Ports = append(br.Ports, "port-eth")
	}
	ln := pb("provnet", ovn.TypeLocalnet, "ls-public", "unknown")
	ln.Options = map[string]string{"network_name": "physnet1"}
	return c.put(br, ln)
}

// tenant adds router N with gateway address 172.24.4.N, one network
// 10.10.0.0/24 + 2001:db8:10::/64, a VM .5 bound elsewhere, and VNI.
func (c cloud) tenant(n int, vni intent.VNI) cloud {
	r := fmt.Sprintf("r%d", n)
	ext := map[string]string{"neutron_bgpvpn:vni": vni.String(), "neutron_bgpvpn:as": "64999"}
	gwMAC := fmt.Sprintf("02:00:00:00:%02x:%02x 172.24.%d.%d/16 2001:db8:ff::%x/64", n>>8, n&255, 4+n>>8, n&255, n)
	cr := pb("cr-lrp-gw-"+r, ovn.TypeChassisRedirect, "lr-"+r, gwMAC)
	cr.Chassis, cr.Options = here, map[string]string{"distributed-port": "lrp-gw-" + r}
	lrp := pb("lrp-gw-"+r, ovn.TypePatch, "lr-"+r, gwMAC)
	lrp.Options = map[string]string{"peer": "gw-" + r}
	lsp := pb("gw-"+r, ovn.TypePatch, "ls-public", "router")
	lsp.Options, lsp.ExternalIDs = map[string]string{"peer": "lrp-gw-" + r}, ext
	in := pb("lrp-in-"+r, ovn.TypePatch, "lr-"+r, fmt.Sprintf("02:00:00:01:%02x:%02x 10.10.0.1/24 2001:db8:10::1/64", n>>8, n&255))
	in.Options = map[string]string{"peer": "in-" + r}
	inSwitch := pb("in-"+r, ovn.TypePatch, "ls-"+r, "router")
	inSwitch.Options, inSwitch.ExternalIDs = map[string]string{"peer": "lrp-in-" + r}, ext
	vm := pb("vm-"+r, ovn.TypeVIF, "ls-"+r, "02:00:00:02:00:05 10.10.0.5 2001:db8:10::5")
	vm.Chassis = there
	return c.put(
		ovn.DatapathBinding{UUID: ovn.UUID("lr-" + r), ExternalIDs: map[string]string{"logical-router": "nb-" + r, "name": r}},
		ovn.DatapathBinding{UUID: ovn.UUID("ls-" + r), ExternalIDs: map[string]string{"logical-switch": "nb-ls-" + r, "name": "net-" + r}},
		cr, lrp, lsp, in, inSwitch, vm,
	)
}

// indices is an allocator in memory.
type indices map[intent.VNI]uint16

func (x indices) Index(vni intent.VNI) (uint16, error) {
	if n, ok := x[vni]; ok {
		return n, nil
	}
	used := map[uint16]bool{}
	for _, n := range x {
		used[n] = true
	}
	for n := uint16(1); ; n++ {
		if !used[n] {
			x[vni] = n
			return n, nil
		}
	}
}

func (x indices) Release(vni intent.VNI) { delete(x, vni) }

func (indices) Seniority(_ intent.VNI, routers []string) []string { return routers }
func (indices) Leave(intent.VNI, string)                          {}

// identity gives each VNI a number that depends on nothing else.
type identity struct{}

func (identity) Index(vni intent.VNI) (uint16, error) { return uint16(vni), nil }
func (identity) Release(intent.VNI)                   {}

func (identity) Seniority(_ intent.VNI, routers []string) []string { return routers }
func (identity) Leave(intent.VNI, string)                          {}

func testConfig() Config {
	return Config{ASN: 65001, NextHopMAC: intent.MAC{2, 0x5c, 0, 0, 0, 1}}
}

func compute(c cloud, cfg Config) *Translator {
	t := NewTranslator(cfg, indices{}, &loadbalancer.Book{})
	t.Step(c.load(), ovn.Dirty{All: true}, true)
	return t
}

// announced lists what is announced, as "VNI prefix".
func announced(t *Translator) []string {
	var out []string
	for k := range wanted.Rows(t.Tables(), intent.Announcements) {
		out = append(out, k.String())
	}
	slices.Sort(out)
	return out
}

// routes lists the routes of a kind, as "VNI prefix".
func routes(t *Translator, kind intent.RouteKind) []string {
	var out []string
	for k, r := range wanted.Rows(t.Tables(), intent.Routes) {
		if r.Kind == kind {
			out = append(out, k.String())
		}
	}
	slices.Sort(out)
	return out
}

// complaints lists the errors as "kind name reason", notes likewise.
func complaints(t *Translator) (errs, notes []string) {
	for _, e := range t.Errors() {
		errs = append(errs, e.Kind+" "+e.Name+" "+e.Reason)
	}
	for _, n := range t.Notes() {
		notes = append(notes, n.Kind+" "+n.Name+" "+n.Reason)
	}
	return errs, notes
}

func sorted(lists ...[]string) []string {
	out := slices.Concat(lists...)
	slices.Sort(out)
	return out
}
