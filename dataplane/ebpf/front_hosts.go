package ebpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/cilium/ebpf"
)

// hostFront writes the array before the hosts map, through shared memory. Its
// row for a host has that host, or another one and the remark that it is not
// complete. Where the hash map and the front cannot change at once, a host that
// comes is late by the time between the two, and one that goes is early.
type hostFront struct {
	rows *ebpf.Memory
	mask uint32
	// hosts counts the hosts of the hash map by row of the front.
	hosts []uint32
	// adopted are the rows as they should be, between adopt and settle.
	adopted map[uint32]bpfHostFront
}

// frontSize is the rows of a front for so many hosts, a power of 2: 8 MiB for a
// million. With a tenth of the limit in use five of six hosts are in the front,
// with a quarter two of three.
func frontSize(hosts uint32) uint32 {
	return 1 << bits.Len32(max(hosts/4, 1024)-1)
}

// hostSlot is host_slot of bpf/lib/lookup.h.
func hostSlot(k bpfHostKey) uint32 {
	word := func(i int) uint64 { return uint64(binary.NativeEndian.Uint32(k.Addr[4*i:])) }
	h := (uint64(k.Vni)<<32 | word(3)) * 0x9e3779b97f4a7c15
	h ^= (word(0)<<32 | word(1)) * 0xff51afd7ed558ccd
	h = (h ^ h>>32 ^ word(2)) * 0xc4ceb9fe1a85ec53
	return uint32(h >> 32)
}

func openHostFront(m *ebpf.Map) (*hostFront, error) {
	rows, err := m.Memory()
	if err != nil {
		return nil, fmt.Errorf("share memory: %w", err)
	}
	if need := uint64(m.MaxEntries()) * frontRow; rows.ReadOnly() || uint64(rows.Size()) < need {
		return nil, fmt.Errorf("share memory: %d bytes are writable, %d are needed", rows.Size(), need)
	}
	return &hostFront{rows: rows, mask: m.MaxEntries() - 1, hosts: make([]uint32, m.MaxEntries()),
		adopted: map[uint32]bpfHostFront{}}, nil
}

// The parts of a row: vni and complete, then the route, then the address.
const (
	frontRow   = uint64(unsafe.Sizeof(bpfHostFront{}))
	frontRoute = uint64(unsafe.Offsetof(bpfHostFront{}.Route))
)

func frontBytes(r *bpfHostFront) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(r)), frontRow)
}

func (r *bpfHostFront) holds(k bpfHostKey) bool { return r.Vni == k.Vni && r.Addr == k.Addr }

func (f *hostFront) read(slot uint32) (r bpfHostFront) {
	f.must(f.rows.ReadAt(frontBytes(&r), int64(uint64(slot)*frontRow)))
	return r
}

// write makes a row say nothing while it changes: in between, the programs ask
// the hash map.
func (f *hostFront) write(slot uint32, r bpfHostFront) {
	at, b := int64(uint64(slot)*frontRow), frontBytes(&r)
	var nothing [frontRoute]byte
	f.must(f.rows.WriteAt(nothing[:], at))
	f.must(f.rows.WriteAt(b[frontRoute:], at+int64(frontRoute)))
	f.must(f.rows.WriteAt(b[:frontRoute], at))
}

// must: the bounds were checked when the memory was opened.
func (f *hostFront) must(_ int, err error) {
	if err != nil {
		panic(fmt.Sprintf("shared memory of %s: %v", bpfMapHostFrontV1, err))
	}
}

// put follows a row that was written to the hash map.
func (f *hostFront) put(k bpfHostKey, v bpfRoute, had bool) error {
	slot := hostSlot(k) & f.mask
	if !had {
		f.hosts[slot]++
	}
	r := f.read(slot)
	if !r.holds(k) && r.Vni != 0 {
		r.Complete = 0
	} else {
		r = bpfHostFront{Vni: k.Vni, Addr: k.Addr, Route: v, Complete: flag(f.hosts[slot] == 1)}
	}
	f.write(slot, r)
	return nil
}

// remove goes before a row that is deleted from the hash map.
func (f *hostFront) remove(k bpfHostKey) {
	slot := hostSlot(k) & f.mask
	f.hosts[slot]--
	r := f.read(slot)
	if r.holds(k) {
		r = bpfHostFront{}
	}
	r.Complete = flag(f.hosts[slot] == 0 || f.hosts[slot] == 1 && r.Vni != 0)
	f.write(slot, r)
}

func flag(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

func (s *store) dropHost(k bpfHostKey, old bpfRoute) error {
	s.front.remove(k)
	err := s.drop(bpfMapHostsV1, k)
	if err != nil {
		return errors.Join(err, s.front.put(k, old, false))
	}
	return nil
}

// adopt takes a host of the hash map over at a start.
func (f *hostFront) adopt(k bpfHostKey, v bpfRoute) {
	slot := hostSlot(k) & f.mask
	f.hosts[slot]++
	r := f.read(slot)
	_, taken := f.adopted[slot]
	if r.holds(k) || !taken {
		f.adopted[slot] = bpfHostFront{Vni: k.Vni, Addr: k.Addr, Route: v}
	}
}

// settle ends adoption: the front becomes what the hash map says. Rows that are
// right are not touched.
func (f *hostFront) settle() {
	for i, n := range f.hosts {
		slot := uint32(i)
		want := f.adopted[slot]
		want.Complete = flag(n <= 1)
		if f.read(slot) != want {
			f.write(slot, want)
		}
	}
	f.adopted = nil
}
