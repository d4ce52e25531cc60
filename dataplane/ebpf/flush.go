package ebpf

import (
	"errors"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// endedFlows are the VIPs with backends whose flows end (Load_Balancer.options:ct_flush).
type endedFlows map[intent.VIPKey]map[backendKey]bool

// add takes note of the backends that a VIP had and has no more.
func (e *endedFlows) add(vip intent.VIPKey, had, has []backendKey) {
	for _, b := range had {
		if slices.Contains(has, b) {
			continue
		}
		if *e == nil {
			*e = endedFlows{}
		}
		if (*e)[vip] == nil {
			(*e)[vip] = map[backendKey]bool{}
		}
		(*e)[vip][b] = true
	}
}

// has tells whether a client's flow ends. A VIP of all ports has those of its ports that
// have no VIP of their own.
func (e endedFlows) has(f Flow, taken func(intent.VIPKey) bool) bool {
	vip := intent.VIPKey{VNI: f.Key.VNI, Protocol: f.Key.Protocol, Addr: f.Key.Dst.Addr(), Port: f.Key.Dst.Port()}
	backend := backendKey{vip.VNI, vip.Protocol, f.Becomes.Addr(), f.Becomes.Port()}
	if e[vip][backend] {
		return true
	}
	if taken(vip) {
		return false
	}
	vip.Port, backend.port = 0, 0
	return e[vip][backend]
}

// endFlows ends what is to end. What fails is tried again with the next row.
func (s *store) endFlows() error {
	if len(s.lb.ended) == 0 {
		return nil
	}
	taken := func(k intent.VIPKey) bool { _, ok := s.lb.vips[vipKernelKey(k)]; return ok }
	err := s.endWhich(func(f Flow) bool { return s.lb.ended.has(f, taken) })
	if err == nil {
		s.lb.ended = nil
	}
	return err
}

// endLeft ends what another process has left: flows to backends that are none of their VIP's,
// which has them end. It may have written the VIP and ended before it came to its flows.
func (s *store) endLeft() error {
	left := map[bpfVipKey]map[backendKey]bool{} // the backends that a VIP has
	for k, v := range s.lb.vips {
		if bpfVipFlags(v.Flags)&(bpfVipFlagsVIP_FLUSH|bpfVipFlagsVIP_OVN) != bpfVipFlagsVIP_FLUSH {
			continue
		}
		left[k] = map[backendKey]bool{}
		for _, b := range s.lb.members(v.Table) {
			left[k][b] = true
		}
	}
	if s.readOnly || len(left) == 0 {
		return nil
	}
	return s.endWhich(func(f Flow) bool {
		k := vipKernelKey(intent.VIPKey{VNI: f.Key.VNI, Protocol: f.Key.Protocol, Addr: f.Key.Dst.Addr(), Port: f.Key.Dst.Port()})
		backend := backendKey{f.Key.VNI, f.Key.Protocol, f.Becomes.Addr(), f.Becomes.Port()}
		if _, its := s.lb.vips[k]; !its {
			k.Port, backend.port = 0, 0
		}
		has, ends := left[k]
		return ends && !has[backend]
	})
}

// endWhich removes the rows of flows to VIPs, in both directions.
func (s *store) endWhich(ends func(Flow) bool) error {
	var keys []bpfFlowKey
	_, err := pinned.Walk(s.t[bpfMapFlowsV3], func(k bpfFlowKey, v bpfFlow) {
		if f := flowOf(k, v, 0); f.ToVIP && ends(f) {
			keys = append(keys, k, kernelFlowKey(FlowKey{VNI: f.Key.VNI, Protocol: f.Key.Protocol, Src: f.Becomes, Dst: f.Key.Src, Tap: f.Key.Tap}))
		}
	})
	for _, k := range keys {
		// What the programs have given to another flow meanwhile is gone already.
		if gone := s.t[bpfMapFlowsV3].Delete(k); gone != nil && !errors.Is(gone, ebpf.ErrKeyNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return mapError(bpfMapFlowsV3, err)
}
