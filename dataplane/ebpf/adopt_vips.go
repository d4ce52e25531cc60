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
	err = eachInner(s.t[bpfMapMaglevV1], func(row uint32, inner *ebpf.Map) error {
		if vip, ok := used[row]; ok {
			return s.adoptTable(row, inner, vip, s.lb.vips[vip].Slots)
		}
		if s.readOnly {
			return nil
		}
		// What a crash left: no VIP refers to it.
		return mapError(bpfMapMaglevV1, s.t[bpfMapMaglevV1].Delete(row))
	})
	if err != nil {
		return err
	}
	for k, v := range s.lb.vips {
		if s.lb.value(k, v) == (intent.VIP{}) {
			// Nobody but Sluice may have written it. It comes again with its own table.
			delete(s.lb.vips, k)
			if err := s.drop(bpfMapVipsV1, k); err != nil {
				return err
			}
			continue
		}
		s.lb.tables.retain(v.Table)
		if !s.readOnly {
			s.vrfs.vips[intent.VNI(k.Scope)]++
			s.lb.use(k, bpfVip{}, v)
		}
	}
	return nil
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
