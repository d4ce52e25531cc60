package steering

import (
	"errors"
	"io/fs"
	"maps"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/dataplane/metadata/identity"
	"github.com/ovn-sluice/sluice/dataplane/metadata/namespace"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// table is what the file says of entries: the ports that have a tap, and of each network
// those that have none. Only these are members of it: who asks in the namespace is told by an
// address, and a port with a tap never asks there.
func (d *Driver) table(entries map[string]*entry) (*identity.Table, error) {
	var ports []identity.Port
	networks := map[string]*identity.Network{}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		e := entries[name]
		if e.value.Tap != (intent.Tap{}) {
			ports = append(ports, e.port())
			continue
		}
		n := e.value.Network
		inside, err := d.config.Names.Name(n)
		if networks[n] == nil && err == nil {
			_, device := namespace.Devices(n)
			networks[n] = &identity.Network{Name: n, Namespace: inside, Device: device}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		e := entries[name]
		if n := networks[e.value.Network]; n != nil {
			if e.value.Tap == (intent.Tap{}) {
				n.Members = append(n.Members, e.member())
			}
			n.IPv6 = n.IPv6 || slices.ContainsFunc(e.value.Addresses.All(), func(g intent.PortAddress) bool { return g.Addr.Is6() })
		}
	}
	var list []identity.Network
	for _, name := range slices.Sorted(maps.Keys(networks)) {
		list = append(list, *networks[name])
	}
	return identity.NewTable(ports, list)
}

func (e *entry) port() identity.Port {
	v := e.value
	p := identity.Port{
		Name: v.Port, Instance: v.Instance, Project: v.Project, Network: v.Network,
		Numbers4: map[identity.Number]netip.Addr{}, Numbers6: map[identity.Number]intent.MAC{},
		Row: &identity.Row{Tap: v.Tap.Name, IfIndex: v.Tap.IfIndex, VLAN: v.Tap.VLAN, Answer: v.Answer, Addresses: v.Addresses.All()},
	}
	for g, n := range e.numbers {
		if g.addr.IsValid() {
			p.Numbers4[n] = g.addr
		} else {
			p.Numbers6[n] = g.mac
		}
	}
	return p
}

func (e *entry) member() identity.Member {
	v := e.value
	return identity.Member{Name: v.Port, Instance: v.Instance, Project: v.Project, Addresses: v.Addresses.All(), Answer: v.Answer}
}

// read is what the file says; whole is false if it does not say all of it. One that
// cannot be read says nothing: all that the maps have is nobody's then.
func (d *Driver) read() (entries map[string]*entry, whole bool) {
	entries = map[string]*entry{}
	t, err := identity.Read(d.config.File)
	if errors.Is(err, fs.ErrNotExist) {
		return entries, true
	}
	if err != nil {
		d.config.Log.Warn("the file of metadata identities cannot be read; writing it again", "error", err)
		return entries, false
	}
	whole = true
	for _, p := range t.Ports() {
		e := entryOf(p)
		for g, n := range e.numbers {
			if !d.hold(n) {
				delete(e.numbers, g)
				whole = false
			}
		}
		entries[p.Name] = e
	}
	for _, n := range t.Networks() {
		for _, m := range n.Members {
			if entries[m.Name] == nil {
				entries[m.Name] = &entry{value: intent.MetadataPort{
					Port: m.Name, Network: n.Name, Instance: m.Instance, Project: m.Project,
					Addresses: intent.NewPortAddressSet(m.Addresses...), Answer: m.Answer,
				}}
			}
		}
	}
	return entries, whole
}

func entryOf(p identity.Port) *entry {
	e := &entry{
		value:   intent.MetadataPort{Port: p.Name, Network: p.Network, Instance: p.Instance, Project: p.Project},
		numbers: map[guest]identity.Number{},
	}
	if r := p.Row; r != nil {
		e.value.Tap = intent.Tap{Name: r.Tap, IfIndex: r.IfIndex, VLAN: r.VLAN}
		e.value.Answer, e.value.Addresses = r.Answer, intent.NewPortAddressSet(r.Addresses...)
	}
	macs := map[netip.Addr]intent.MAC{}
	for _, g := range guestsOf(e.value) {
		if g.addr.IsValid() {
			macs[g.addr] = g.mac
		}
	}
	for n, addr := range p.Numbers4 {
		e.numbers[guest{macs[addr], addr}] = n
	}
	for n, mac := range p.Numbers6 {
		e.numbers[guest{mac: mac}] = n
	}
	return e
}
