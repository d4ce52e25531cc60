package ebpf

import (
	"encoding/binary"
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Fronts are the arrays that the programs read before a hash map or a trie: see
// bpf/lib/types.h. Of rows of a hash map that share a row of the front, the one
// that was written last has it; of routes, the one that was there first. A front
// is written after its map and cleared before it, and computed anew at a start.

func (s *store) dropVRF(vni intent.VNI) error {
	s.vrfs.drop(vni)
	return s.drop(bpfMapVrfsV2, uint32(vni))
}

// vtepSlot is the row of an IPv4 address; IPv6 ones are in the hash map alone.
func (s *store) vtepSlot(a netip.Addr) uint32 {
	b := a.As4()
	return binary.BigEndian.Uint32(b[:]) % s.t[bpfMapVtepFrontV1].MaxEntries()
}

func (s *store) putVTEP(a netip.Addr) error {
	if err := s.put(bpfMapVtepsV1, bpfVtepKey{Addr: a.As16()}, bpfVtep{}); err != nil {
		return err
	}
	if !a.Is4() {
		return nil
	}
	return s.setRow(bpfMapVtepFrontV1, s.vtepSlot(a), be32(a))
}

func (s *store) dropVTEP(a netip.Addr) error {
	if a.Is4() {
		var front uint32
		if err := s.t[bpfMapVtepFrontV1].Lookup(s.vtepSlot(a), &front); err != nil {
			return mapError(bpfMapVtepFrontV1, err)
		}
		if front == be32(a) {
			if err := s.setRow(bpfMapVtepFrontV1, s.vtepSlot(a), uint32(0)); err != nil {
				return err
			}
		}
	}
	return s.drop(bpfMapVtepsV1, bpfVtepKey{Addr: a.As16()})
}

// frontGateway writes a row that is never cleared: the entry that it leads to
// says whose it is.
func (s *store) frontGateway(k bpfGatewayKey, v bpfGateway) error {
	low := uint32(binary.NativeEndian.Uint16(k.Mac[4:]))
	slot := (low ^ uint32(k.Vlan) ^ k.Ifindex) % s.t[bpfMapGateFrontV2].MaxEntries()
	return s.setRow(bpfMapGateFrontV2, slot, v)
}
