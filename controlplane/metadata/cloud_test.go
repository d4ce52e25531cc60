package metadata

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

const (
	here  = ovn.UUID("chassis-here")
	there = ovn.UUID("chassis-there")
)

var synced = ovn.InSync{SB: true, VSwitch: true, NB: true}

var answer = intent.MAC{0x02, 0x53, 0x4c, 0x55, 0xa9, 0xfe}

// cloud is a set of rows to change and to load into a store, and the devices of the node.
type cloud struct {
	rows    map[string]ovn.Row
	devices map[string]intent.TapDevice
}

func (c cloud) put(rows ...ovn.Row) {
	for _, r := range rows {
		c.rows[string(r.Key())] = r
	}
}

func (c cloud) edit(name string, change func(*ovn.PortBinding)) {
	p := c.rows["pb-"+name].(ovn.PortBinding)
	p.ExternalIDs = maps.Clone(p.ExternalIDs)
	change(&p)
	c.put(p)
}

func (c cloud) load() *ovn.Rows {
	rows := ovn.NewRows()
	rows.FollowVMs(true)
	rows.FollowACLs(true)
	var batch []ovn.Change
	for _, id := range slices.Sorted(maps.Keys(c.rows)) {
		batch = append(batch, ovn.Set(c.rows[id]))
	}
	rows.Apply(batch)
	return rows
}

func (c cloud) step(cfg Config) *Translator {
	t := NewTranslator(cfg)
	t.Step(c.load(), c.devices, synced)
	return t
}

// vm adds a VM's port that is bound here.
func (c cloud) vm(name, datapath string, mac ...string) {
	c.put(ovn.PortBinding{UUID: ovn.UUID("pb-" + name), LogicalPort: name, Datapath: ovn.UUID(datapath), Chassis: here, MAC: mac,
		ExternalIDs: map[string]string{keyDeviceID: "instance-" + name, keyProjectID: "project-" + name}})
}

// plug adds an Interface on a bridge, and its device.
func (c cloud) plug(port, bridge string, index uint32) {
	name := "tap" + port
	c.put(ovn.Interface{UUID: ovn.UUID("if-" + port), Name: name, IfaceID: port, IfIndex: index},
		ovn.Port{UUID: ovn.UUID("po-" + port), Name: name, Interfaces: []ovn.UUID{ovn.UUID("if-" + port)}})
	b, _ := c.rows[bridge].(ovn.Bridge)
	b.UUID, b.Name, b.Ports = ovn.UUID(bridge), bridge, append(slices.Clone(b.Ports), ovn.UUID("po-"+port))
	c.put(b)
	c.devices[name] = intent.TapDevice{Name: name, IfIndex: index}
}

// network adds a switch with a metadata port.
func (c cloud) network(name, mac, cidrs string) {
	c.put(ovn.DatapathBinding{UUID: ovn.UUID(name), ExternalIDs: map[string]string{"logical-switch": "nb-" + name, "name": "neutron-" + name}},
		ovn.PortBinding{UUID: ovn.UUID("pb-md-" + name), LogicalPort: "md-" + name, Type: ovn.TypeLocalport, Datapath: ovn.UUID(name), MAC: []string{mac},
			ExternalIDs: map[string]string{keyDeviceID: "ovnmeta-" + name, keyCIDRs: cidrs, keyMTU: "1442"}})
}

// sample is a network with a VM here, one there, and a metadata port.
func sample() cloud {
	c := cloud{map[string]ovn.Row{}, map[string]intent.TapDevice{}}
	c.put(ovn.Chassis{UUID: here, Name: "a1"}, ovn.Chassis{UUID: there, Name: "a2"},
		ovn.OpenvSwitch{UUID: "ovs", ExternalIDs: map[string]string{"system-id": "a1"}})
	c.network("red", "fa:16:3e:00:00:01 10.0.0.2", "10.0.0.2/24 10.0.1.2/24 2001:db8::2/64")
	c.vm("vm", "red", "fa:16:3e:00:00:05 10.0.0.5 2001:db8::5")
	c.vm("far", "red", "fa:16:3e:00:00:06 10.0.1.6")
	c.edit("far", func(p *ovn.PortBinding) { p.Chassis = there })
	c.plug("vm", "br-int", 7)
	return c
}

// say describes what is served, short enough for a table.
func say(t *Translator) string {
	var words []string
	for _, p := range t.Ports() {
		w := fmt.Sprintf("%s %s", p.Port, p.Via)
		if p.Tap != (intent.Tap{}) {
			w += fmt.Sprintf(" %s/%d/%d", p.Tap.Name, p.Tap.IfIndex, p.Tap.VLAN)
		}
		if p.Reason != "" {
			w += fmt.Sprintf(" %s:%s", p.State, p.Reason)
		}
		words = append(words, w)
	}
	for _, n := range t.Networks() {
		words = append(words, fmt.Sprintf("ns %s for %s", n.Network, strings.Join(n.For, ",")))
	}
	for _, o := range t.Objects() {
		if o.Kind == kindNetwork {
			words = append(words, fmt.Sprintf("%s %s:%s", o.Key, o.State, o.Reason))
		}
	}
	return strings.Join(words, "; ")
}

func check(t *testing.T, c cloud, cfg Config, want string) *Translator {
	t.Helper()
	cfg.Answer = answer
	tr := c.step(cfg)
	if got := say(tr); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	for _, p := range tr.Ports() {
		row, there := wanted.Rows(tr.Tables(), intent.MetadataPorts)[p.Port]
		if served := p.Via == ViaTap || p.Via == ViaNamespace; there != served || served && (row.Tap == (intent.Tap{})) != (p.Via == ViaNamespace) {
			t.Errorf("port %s by %s has the row %+v", p.Port, p.Via, row)
		}
	}
	return tr
}
