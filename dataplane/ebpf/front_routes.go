package ebpf

import (
	"encoding/binary"
	"math/bits"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// routeFront writes the array before the maps of routes, through shared memory.
// The row for a route has that route, or another one and the remark that it is
// not complete. Where the maps and the front cannot change at once, a route that
// comes is late by the time between the two, and one that goes is early.
type routeFront struct {
	rows sharedRows[bpfRouteFront]
	mask uint32
	// routes counts the routes of the maps by row of the front.
	routes []uint16
	// adopted are the rows as they should be, between adopt and settle.
	adopted map[uint32]bpfRouteFront
}

// frontSize is the rows of a front for so many routes, a power of 2: 16 MiB for
// a million hosts and 250,000 prefixes of each family. With a tenth of the
// limits in use seven of eight routes are in the front, with a quarter seven of ten.
func frontSize(l Limits) uint32 {
	return 1 << bits.Len32(max((l.Hosts+2*l.Prefixes)/4, 1024)-1)
}

// frontKey is the part of a row that says which route it has.
func frontKey(k intent.RouteKey) bpfRouteFront {
	return bpfRouteFront{Vni: uint32(k.VNI), Length: mappedBits(k), Addr: k.Prefix.Addr().As16()}
}

// mappedBits is the length of a prefix in 16 bytes.
func mappedBits(k intent.RouteKey) uint8 {
	if k.Prefix.Addr().Is4() {
		return uint8(96 + k.Prefix.Bits())
	}
	return uint8(k.Prefix.Bits())
}

// slot is the row of a route.
func (f *routeFront) slot(k bpfRouteFront) uint32 {
	high, low := binary.NativeEndian.Uint64(k.Addr[:]), binary.NativeEndian.Uint64(k.Addr[8:])
	return frontHash(uint64(k.Length)<<32|uint64(k.Vni), high, low) & f.mask
}

// frontHash is front_slot of bpf/lib/lookup.h.
func frontHash(head, high, low uint64) uint32 {
	h := head*0x9e3779b97f4a7c15 ^ high*0xff51afd7ed558ccd ^ low*0xd6e8feb86659fd93
	return uint32((h ^ h>>32) * 0xc4ceb9fe1a85ec53 >> 32)
}

func openRouteFront(m *ebpf.Map) (*routeFront, error) {
	rows, err := shareRows[bpfRouteFront](m)
	if err != nil {
		return nil, err
	}
	return &routeFront{rows: rows, mask: m.MaxEntries() - 1, routes: make([]uint16, m.MaxEntries()),
		adopted: map[uint32]bpfRouteFront{}}, nil
}

func (r *bpfRouteFront) holds(k bpfRouteFront) bool {
	return r.Vni == k.Vni && r.Length == k.Length && r.Addr == k.Addr
}

func (f *routeFront) read(slot uint32) bpfRouteFront { return f.rows.read(slot) }

// write makes a row say nothing while it changes: in between, the programs ask
// the maps.
func (f *routeFront) write(slot uint32, r bpfRouteFront) { f.rows.write(slot, r, true) }

// put follows a route that was written to its map.
func (f *routeFront) put(k bpfRouteFront, v bpfRoute, had bool) {
	slot := f.slot(k)
	if !had {
		f.routes[slot]++
	}
	r := f.read(slot)
	if !r.holds(k) && r.Vni != 0 {
		r.Complete = 0
	} else {
		r = k
		r.Route, r.Complete = v, flag(f.routes[slot] == 1)
	}
	f.write(slot, r)
}

// remove goes before a route that is deleted from its map.
func (f *routeFront) remove(k bpfRouteFront) {
	slot := f.slot(k)
	f.routes[slot]--
	r := f.read(slot)
	if r.holds(k) {
		r = bpfRouteFront{}
	}
	r.Complete = flag(f.routes[slot] == 0 || f.routes[slot] == 1 && r.Vni != 0)
	f.write(slot, r)
}

func flag(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// adopt takes a route of the maps over at a start.
func (f *routeFront) adopt(k bpfRouteFront, v bpfRoute) {
	slot := f.slot(k)
	f.routes[slot]++
	r := f.read(slot)
	_, taken := f.adopted[slot]
	if r.holds(k) || !taken {
		k.Route = v
		f.adopted[slot] = k
	}
}

// settle ends adoption: the front becomes what the maps say. Rows that are right
// are not touched.
func (f *routeFront) settle() {
	for i, n := range f.routes {
		slot := uint32(i)
		want := f.adopted[slot]
		want.Complete = flag(n <= 1)
		if f.read(slot) != want {
			f.write(slot, want)
		}
	}
	f.adopted = nil
}
