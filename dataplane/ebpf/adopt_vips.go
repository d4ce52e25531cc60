package ebpf

import (
	"errors"
	"time"

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
	if s.lb.pages, err = openTablePages(s.t, s.pagePins()); err != nil {
		return err
	}
	if err := s.openStats(); err != nil {
		return err
	}
	n, err := pinned.Walk(s.t[bpfMapVipsV2], func(k bpfVipKey, v bpfVip) {
		s.lb.vips[k] = v
		s.adoptTable(k, v)
	})
	s.rows[bpfMapVipsV2] = n
	if err != nil {
		return mapError(bpfMapVipsV2, err)
	}
	s.lb.first = n == 0
	for k, v := range s.lb.vips {
		if _, taken := s.lb.stats.keys[v.Stats]; taken || v.Stats == 0 || !emptied(v) && s.lb.value(k, v) == (intent.VIP{}) {
			// Nobody but Sluice may have written it. It comes again with its own table.
			delete(s.lb.vips, k)
			if err := s.unlessReadOnly(func() error { return s.drop(bpfMapVipsV2, k) }); err != nil {
				return err
			}
			continue
		}
		s.lb.stats.adopt(v.Stats, k)
		s.lb.stats.retain(v.Stats)
		if _, ok := s.lb.tables.keys[v.Table]; ok {
			s.lb.tables.refs[v.Table]++
		} else if v.Table, v.Slots, v.Members = 0, 0, 0; v != s.lb.vips[k] {
			// Of a VIP that is OVN's: where flows from before went is not known any more. They
			// go on: it does not say of a VIP without a table that all of them end.
			v.Flags &^= uint16(bpfVipFlagsVIP_FLUSH)
			s.lb.vips[k] = v
			if err := s.unlessReadOnly(func() error { return s.put(bpfMapVipsV2, k, v) }); err != nil {
				return err
			}
		}
		if !s.readOnly {
			s.vrfs.adoptVIP(intent.VNI(k.Scope))
			s.lb.bear(vipKey(k), time.Time{})
			s.lb.use(k, bpfVip{}, v)
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

// adoptTable takes over the table of a VIP with its references to backends. One whose
// backends are not what they were is nobody's.
func (s *store) adoptTable(vip bpfVipKey, v bpfVip) {
	if _, ok := s.lb.tables.keys[v.Table]; ok || v.Table == 0 {
		return
	}
	k := tableKey{vni: intent.VNI(vip.Scope), protocol: intent.Protocol(vip.Proto), slots: uint32(v.Slots)}
	words, ok := s.lb.pages.read(v.Table, uint32(slotsOf(k.slots))+uint32(v.Members))
	if !ok {
		return
	}
	members := words[slotsOf(k.slots):]
	var backends []intent.Backend
	for _, w := range members {
		b, ok := s.lb.backends.keys[uint32(w)]
		if !ok || b.vni != k.vni || b.protocol != k.protocol {
			return
		}
		backends = append(backends, intent.Backend{Addr: b.addr, Port: b.port, Weight: uint16(w >> 32)})
	}
	k.backends = intent.NewBackendSet(backends...)
	if _, twice := s.lb.tables.at[k]; twice || k.backends.Len() != len(members) {
		return
	}
	s.lb.tables.add(v.Table, k, words)
	for _, w := range members {
		s.lb.backends.retain(uint32(w))
	}
}

// settleVIPs ends adoption: what nothing refers to is cleared, and the front of backends
// becomes what the map says.
func (s *store) settleVIPs() error {
	var used []span
	for table, k := range s.lb.tables.keys {
		used = append(used, k.span(table))
	}
	s.lb.pages.settle(used)
	s.lb.stats.settle()
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
	return errors.Join(err, s.lb.front.settle(), s.settleAnswers(), s.endLeft())
}

// settleAnswers brings the rows of all backends up to date, and removes those of others.
func (s *store) settleAnswers() error {
	var gone []bpfVipKey
	n, err := pinned.Walk(s.t[bpfMapAnswersV2], func(k bpfVipKey, _ bpfAnswers) {
		if _, ok := s.lb.users[backendKey{intent.VNI(k.Scope), intent.Protocol(k.Proto), from16(k.Addr), bePort(k.Port)}]; !ok {
			gone = append(gone, k)
		}
	})
	s.rows[bpfMapAnswersV2] = n
	if err != nil {
		return mapError(bpfMapAnswersV2, err)
	}
	for _, k := range gone {
		err = errors.Join(err, s.drop(bpfMapAnswersV2, k))
	}
	for member := range s.lb.users {
		err = errors.Join(err, s.writeAnswer(member))
	}
	return err
}
