package ebpf

import (
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

func (s *store) acquireNextHop(owner intent.VNI, h intent.NextHop) (uint32, error) {
	if !h.VTEP.IsValid() || h.VNI > intent.MaxVNI {
		return 0, fmt.Errorf("next hop %s: no address or no VNI", h)
	}
	row, fresh, err := s.nexthops.acquire(nexthopKey{owner, h})
	if err != nil {
		return 0, fmt.Errorf("next hops: %w", err)
	}
	if !fresh {
		return row, nil
	}
	v := bpfNexthop{Owner: uint32(owner), Vni: uint32(h.VNI), Mac: h.RouterMAC, Family: 6, Vtep: h.VTEP.As16()}
	if h.VTEP.Is4() {
		v.Family = 4
	}
	if err := s.setRow(bpfMapNexthopsV1, row, v); err != nil {
		s.nexthops.release(row)
		return 0, err
	}
	return row, nil
}

func (s *store) releaseNextHop(row uint32) error {
	if !s.nexthops.release(row) {
		return nil
	}
	return s.setRow(bpfMapNexthopsV1, row, bpfNexthop{})
}

// acquireGroup finds or writes a set of next hops. A group is never changed in
// place: another set is another row, and the route switches in one write.
func (s *store) acquireGroup(owner intent.VNI, set intent.NextHopSet) (uint32, error) {
	row, fresh, err := s.groups.acquire(groupKey{owner, set})
	if err != nil {
		return 0, fmt.Errorf("next-hop groups: %w", err)
	}
	if !fresh {
		return row, nil
	}
	v := bpfGroup{Owner: uint32(owner), Slots: fillSlots(set.All())}
	for _, h := range set.All() {
		member, err := s.acquireNextHop(owner, h)
		if err != nil {
			s.groups.release(row)
			return 0, joinRelease(err, s.releaseMembers(v))
		}
		v.Members[v.Count] = member
		v.Count++
	}
	if err := s.setRow(bpfMapGroupsV1, row, v); err != nil {
		s.groups.release(row)
		return 0, joinRelease(err, s.releaseMembers(v))
	}
	return row, nil
}

func joinRelease(err, release error) error {
	if release != nil {
		return fmt.Errorf("%w (and giving back what was taken: %w)", err, release)
	}
	return err
}

func (s *store) releaseMembers(g bpfGroup) error {
	for _, m := range g.Members[:min(int(g.Count), len(g.Members))] {
		if err := s.releaseNextHop(m); err != nil {
			return err
		}
	}
	return nil
}

func (s *store) releaseGroup(row uint32) error {
	if !s.groups.release(row) {
		return nil
	}
	return s.clearGroup(row)
}

func (s *store) clearGroup(row uint32) error {
	var g bpfGroup
	if err := s.t[bpfMapGroupsV1].Lookup(row, &g); err != nil {
		return mapError(bpfMapGroupsV1, err)
	}
	if err := s.setRow(bpfMapGroupsV1, row, bpfGroup{}); err != nil {
		return err
	}
	return s.releaseMembers(g)
}

// fillSlots gives each slot to the next hop with the highest weight in it
// (rendezvous hashing), so that a next hop that goes takes only its own flows
// along, and one that comes takes only what becomes its own. The weights depend
// on nothing but the next hop and the slot: all nodes and restarts agree.
func fillSlots(hops []intent.NextHop) (slots [len(bpfGroup{}.Slots)]uint8) {
	for slot := range slots {
		var best uint64
		for i, h := range hops {
			if w := weight(h, slot); i == 0 || w > best {
				best, slots[slot] = w, uint8(i)
			}
		}
	}
	return slots
}

// weight is FNV-1a over the next hop and the slot, with a final mix.
func weight(h intent.NextHop, slot int) uint64 {
	x := uint64(14695981039346656037)
	add := func(b byte) { x = (x ^ uint64(b)) * 1099511628211 }
	for _, b := range h.VTEP.As16() {
		add(b)
	}
	for _, b := range h.RouterMAC {
		add(b)
	}
	for shift := 0; shift < 32; shift += 8 {
		add(byte(h.VNI >> shift))
	}
	add(byte(slot))
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}

func (v bpfNexthop) hop() intent.NextHop {
	vtep := netip.AddrFrom16(v.Vtep)
	if v.Family == 4 {
		vtep = vtep.Unmap()
	}
	return intent.NextHop{VTEP: vtep, VNI: intent.VNI(v.Vni), RouterMAC: v.Mac}
}

// adoptNextHops takes over the rows of nexthops and groups.
func (s *store) adoptNextHops() error {
	err := eachRow(s.t[bpfMapNexthopsV1], func(row uint32, v bpfNexthop) {
		if v.Owner == 0 {
			return
		}
		s.nexthops.adopt(row, nexthopKey{intent.VNI(v.Owner), v.hop()})
	})
	if err != nil {
		return mapError(bpfMapNexthopsV1, err)
	}
	err = eachRow(s.t[bpfMapGroupsV1], func(row uint32, v bpfGroup) {
		if v.Owner == 0 {
			return
		}
		var hops []intent.NextHop
		for _, m := range v.Members[:min(int(v.Count), len(v.Members))] {
			if k, ok := s.nexthops.keys[m]; ok && uint32(k.owner) == v.Owner {
				hops = append(hops, k.hop)
			}
			s.nexthops.retain(m)
		}
		s.groups.adopt(row, groupKey{intent.VNI(v.Owner), intent.NewNextHopSet(hops...)})
	})
	return mapError(bpfMapGroupsV1, err)
}

// eachRow reads all rows of an array.
func eachRow[V any](m *ebpf.Map, each func(uint32, V)) error {
	_, err := pinned.Walk(m, each)
	return err
}
