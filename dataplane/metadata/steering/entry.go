package steering

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
	"github.com/ovn-sluice/sluice/dataplane/metadata/identity"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// guest is who has a number: an IPv4 address with its MAC address, or with no address all
// link-local ones of IPv6 that a MAC address may have.
type guest struct {
	mac  intent.MAC
	addr netip.Addr
}

// guestsOf are those of a port that has a tap. An IPv4 address that several MAC addresses
// have is the first one's: the tap's program knows one source by its address.
func guestsOf(v intent.MetadataPort) []guest {
	if v.Tap == (intent.Tap{}) {
		return nil
	}
	var out []guest
	taken := map[guest]struct{}{}
	add := func(key, g guest) {
		if _, twice := taken[key]; !twice {
			taken[key] = struct{}{}
			out = append(out, g)
		}
	}
	for _, g := range v.Addresses.All() {
		if g.MAC.IsZero() || g.MAC[0]&1 != 0 {
			continue // no frame has such a source
		}
		add(guest{mac: g.MAC}, guest{mac: g.MAC})
		if g.Addr.Is4() && !g.Addr.IsUnspecified() {
			add(guest{addr: g.Addr}, guest{g.MAC, g.Addr})
		}
	}
	return out
}

// entry is a port as the file has it.
type entry struct {
	value   intent.MetadataPort
	numbers map[guest]identity.Number
}

// sources are the rows that the maps have to have of it.
func (e *entry) sources() []taps.Source {
	if e == nil {
		return nil
	}
	out := make([]taps.Source, 0, len(e.numbers))
	for g, n := range e.numbers {
		out = append(out, taps.Source{
			IfIndex: e.value.Tap.IfIndex, VLAN: e.value.Tap.VLAN, MAC: g.mac, Addr: g.addr, Number: uint32(n), Answer: e.value.Answer,
		})
	}
	return out
}

// complete tells whether every guest has a number, and nobody else.
func (e *entry) complete() bool {
	guests := guestsOf(e.value)
	for _, g := range guests {
		if e.numbers[g] == 0 {
			return false
		}
	}
	return len(guests) == len(e.numbers)
}

// keeps tells whether a port's guests keep their numbers when it becomes another row.
func (e *entry) keeps(v intent.MetadataPort) bool {
	same := func(was, is string) bool { return was == "" || was == is }
	w := e.value
	return w.Tap == v.Tap && same(w.Instance, v.Instance) && same(w.Project, v.Project) && same(w.Network, v.Network)
}

// plan is the entry of a row; the numbers that it has beyond those of old are in taken.
func (d *Driver) plan(v intent.MetadataPort, old *entry) (e *entry, taken []identity.Number, err error) {
	e = &entry{v, map[guest]identity.Number{}}
	for _, g := range guestsOf(v) {
		if old != nil && old.keeps(v) && old.numbers[g] != 0 {
			e.numbers[g] = old.numbers[g]
			continue
		}
		n, err := d.pool.Take(d.config.Now())
		if err != nil {
			d.give(taken)
			return nil, nil, err
		}
		d.held[n] = struct{}{}
		e.numbers[g], taken = n, append(taken, n)
	}
	return e, taken, nil
}

// hold sees to it that a number that is in use somewhere is not given out; false for one
// that is none.
func (d *Driver) hold(n identity.Number) bool {
	if _, held := d.held[n]; held {
		return true
	}
	if d.pool.Adopt(n) != nil {
		return false
	}
	d.held[n] = struct{}{}
	return true
}

// count takes the numbers that file or maps have for given, and no others.
func (d *Driver) count() {
	used := map[identity.Number]struct{}{}
	for s := range d.rows {
		used[identity.Number(s.Number)] = struct{}{}
		d.hold(identity.Number(s.Number))
	}
	for _, e := range d.entries {
		for _, n := range e.numbers {
			used[n] = struct{}{}
		}
	}
	var gone []identity.Number
	for n := range d.held {
		if _, ok := used[n]; !ok {
			gone = append(gone, n)
		}
	}
	d.give(gone)
}

func (d *Driver) give(numbers []identity.Number) {
	for _, n := range numbers {
		d.pool.Give(n, d.config.Now())
		delete(d.held, n)
	}
}
