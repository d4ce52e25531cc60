package ebpf

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
)

// leastPathMTU is the smallest outer packet that counts: with less no inner packet would fit
// through the headers of a tunnel over IPv6. The kernel takes no path for narrower than 552.
const leastPathMTU = 256

// SetPathMTUs has packets to some VTEPs answered, or fragmented, at smaller outer sizes than
// Node.UnderlayMTU, and changes what differs from the map. With all given, the others have
// none; else what a process before has set stays, and grows no wider.
func (d *Dataplane) SetPathMTUs(mtus map[netip.Addr]int, all bool) error {
	s := d.store
	s.mu.Lock()
	defer s.mu.Unlock()
	rows, least := make(map[bpfVtepKey]bpfPathMtu, len(mtus)), bpfPathMtu{}
	for a, mtu := range mtus {
		rows[bpfVtepKey{Addr: a.As16()}] = bpfPathMtu{Mtu: uint32(max(mtu, leastPathMTU))}
	}
	narrowest := func(row bpfPathMtu) {
		if least.Mtu == 0 || row.Mtu < least.Mtu {
			least = row
		}
	}
	for _, row := range rows {
		narrowest(row)
	}
	var stale []bpfVtepKey
	_, err := pinned.Walk(s.t[bpfMapPathMtusV1], func(k bpfVtepKey, v bpfPathMtu) {
		switch want, ok := rows[k]; {
		case !all && (!ok || v.Mtu <= want.Mtu):
			narrowest(v)
			delete(rows, k)
		case !ok:
			stale = append(stale, k)
		case want == v:
			delete(rows, k)
		}
	})
	if err != nil {
		return fmt.Errorf("read the MTUs of paths: %w", mapError(bpfMapPathMtusV1, err))
	}
	var errs []error
	for k, v := range rows {
		errs = append(errs, mapError(bpfMapPathMtusV1, s.t[bpfMapPathMtusV1].Put(k, v)))
	}
	errs = append(errs, mapError(bpfMapPathLeastV1, s.t[bpfMapPathLeastV1].Put(uint32(0), least)))
	for _, k := range stale {
		if err := s.t[bpfMapPathMtusV1].Delete(k); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			errs = append(errs, mapError(bpfMapPathMtusV1, err))
		}
	}
	return errors.Join(errs...)
}
