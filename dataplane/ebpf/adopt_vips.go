package ebpf

import (
	"errors"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// adoptVIPs takes over backends, tables and VIPs, and counts what refers to what.
func (s *store) adoptVIPs() error {
	err := eachRow(s.t[bpfMapBackendsV1], func(row uint32, b bpfBackend) {
		if b.Scope != 0 {
			s.lb.backends.adopt(row, backendKey{intent.VNI(b.Scope), intent.Protocol(b.Proto), from16(b.Addr), bePort(b.Port)})
		}
	})
	if err != nil {
		return mapError(bpfMapBackendsV1, err)
	}
	used := map[uint32]bpfVipKey{}
	n, err := pinned.Walk(s.t[bpfMapVipsV1], func(k bpfVipKey, v bpfVip) {
		s.lb.vips[k] = v
		used[v.Table] = k
	})
	s.rows[bpfMapVipsV1] = n
	if err != nil {
		return mapError(bpfMapVipsV1, err)
	}
	s.lb.first = n == 0
	if err := s.adoptTables(used); err != nil {
		return err
	}
	for k, v := range s.lb.vips {
		if s.lb.value(k, v) == (intent.VIP{}) {
			// Nobody but Sluice may have written it. It comes again with its own table.
			delete(s.lb.vips, k)
			if err := s.unlessReadOnly(func() error { return s.drop(bpfMapVipsV1, k) }); err != nil {
				return err
			}
			continue
		}
		if _, ok := s.lb.tables.keys[v.Table]; ok {
			s.lb.tables.retain(v.Table)
		} else if v.Table, v.Slots = 0, 0; v != s.lb.vips[k] {
			// Of a VIP that is OVN's: where flows from before went is not known any more.
			s.lb.vips[k] = v
			if err := s.unlessReadOnly(func() error { return s.put(bpfMapVipsV1, k, v) }); err != nil {
				return err
			}
		}
		if !s.readOnly {
			s.vrfs.vips[intent.VNI(k.Scope)]++
			s.lb.use(k, bpfVip{}, v)
		}
	}
	return nil
}

// adoptTables takes over the tables of VIPs, by row. What a crash left in a row that no VIP
// refers to stays until the row is used again: before Linux 6.8 each look into a map of maps
// waits for all programs that run, which takes minutes for all rows.
func (s *store) adoptTables(used map[uint32]bpfVipKey) error {
	for row, vip := range used {
		var inner *ebpf.Map
		err := s.t[bpfMapMaglevV1].Lookup(row, &inner)
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			continue
		}
		if err != nil {
			return mapError(bpfMapMaglevV1, err)
		}
		err = s.adoptTable(row, inner, vip, s.lb.vips[vip].Slots)
		inner.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// unlessReadOnly mends what is found, where the maps are not only looked at.
func (s *store) unlessReadOnly(mend func() error) error {
	if s.readOnly {
		return nil
	}
	return mend()
}

// adoptTable takes over a table with its references to backends. One whose backends
// are not what they were is nobody's.
func (s *store) adoptTable(row uint32, inner *ebpf.Map, vip bpfVipKey, slots uint32) error {
	if inner.MaxEntries() < uint32(slotsOf(slots)) {
		return nil
	}
	members, err := membersOf(inner, slots)
	if err != nil {
		return err
	}
	k := tableKey{vni: intent.VNI(vip.Scope), protocol: intent.Protocol(vip.Proto), slots: slots}
	var backends []intent.Backend
	for _, m := range members {
		b, ok := s.lb.backends.keys[m.Backend]
		if !ok || b.vni != k.vni || b.protocol != k.protocol {
			return nil
		}
		backends = append(backends, intent.Backend{Addr: b.addr, Port: b.port, Weight: m.Weight})
	}
	k.backends = intent.NewBackendSet(backends...)
	if k.backends.Len() != len(members) {
		return nil
	}
	s.lb.tables.adopt(row, k)
	for _, m := range members {
		s.lb.backends.retain(m.Backend)
	}
	return nil
}

// settleVIPs ends adoption: what nothing refers to is cleared, and the front of backends
// becomes what the map says.
func (s *store) settleVIPs() error {
	s.lb.tables.settle() // tables without a VIP are gone already
	for _, row := range s.lb.backends.settle() {
		if err := s.setRow(bpfMapBackendsV1, row, bpfBackend{}); err != nil {
			return err
		}
	}
	s.lb.front = newBackendFront(s.t[bpfMapBackendFrontV1])
	err := eachRow(s.t[bpfMapBackendsV1], func(_ uint32, b bpfBackend) {
		if b.Scope != 0 {
			s.lb.front.adopt(b)
		}
	})
	return errors.Join(err, s.lb.front.settle(), s.settleAnswers())
}

// settleAnswers brings the rows of all backends up to date, and removes those of others.
func (s *store) settleAnswers() error {
	var gone []bpfVipKey
	n, err := pinned.Walk(s.t[bpfMapAnswersV1], func(k bpfVipKey, _ bpfAnswers) {
		if _, ok := s.lb.users[backendKey{intent.VNI(k.Scope), intent.Protocol(k.Proto), from16(k.Addr), bePort(k.Port)}]; !ok {
			gone = append(gone, k)
		}
	})
	s.rows[bpfMapAnswersV1] = n
	if err != nil {
		return mapError(bpfMapAnswersV1, err)
	}
	for _, k := range gone {
		err = errors.Join(err, s.drop(bpfMapAnswersV1, k))
	}
	for member := range s.lb.users {
		err = errors.Join(err, s.writeAnswer(member))
	}
	return err
}
