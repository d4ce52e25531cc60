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

// ends of a client's flow are its VIP and its backend. A VIP of all ports, whose backends are
// of all ports, has the flows of those that have no VIP of their own, and had none.
func (b *balancing) ends(f Flow) (intent.VIPKey, backendKey) {
	vip := intent.VIPKey{VNI: f.Key.VNI, Protocol: f.Key.Protocol, Addr: f.Key.Dst.Addr(), Port: f.Key.Dst.Port()}
	backend := backendKey{vip.VNI, vip.Protocol, f.Becomes.Addr(), f.Becomes.Port()}
	if _, ok := b.vips[vipKernelKey(vip)]; !ok && b.ended[vip] == nil {
		vip.Port, backend.port = 0, 0
	}
	return vip, backend
}

// endFlows ends what is to end. What fails is tried again with the next row.
func (s *store) endFlows() error {
	if len(s.lb.ended) == 0 {
		return nil
	}
	err := s.endWhich(func(vip intent.VIPKey, backend backendKey) bool { return s.lb.ended[vip][backend] })
	if err == nil {
		s.lb.ended = nil
	}
	return err
}

// endLeft ends what another process has left: flows to backends that are none of their VIP's,
// which has them end. It may have written the VIP and ended before it came to its flows.
func (s *store) endLeft() error {
	if s.readOnly {
		return nil
	}
	has := map[intent.VIPKey]map[backendKey]bool{}
	for k, v := range s.lb.vips {
		if bpfVipFlags(v.Flags)&bpfVipFlagsVIP_FLUSH == 0 {
			continue
		}
		key := vipKey(k)
		has[key] = map[backendKey]bool{}
		for _, b := range s.lb.members(v.Table) {
			has[key][b] = true
		}
	}
	if len(has) == 0 {
		return nil
	}
	return s.endWhich(func(vip intent.VIPKey, backend backendKey) bool {
		its, ends := has[vip]
		return ends && !its[backend]
	})
}

// endWhich removes the rows of flows from VIPs to backends, in both directions.
func (s *store) endWhich(ends func(intent.VIPKey, backendKey) bool) error {
	var keys []bpfFlowKey
	_, err := pinned.Walk(s.t[bpfMapFlowsV3], func(k bpfFlowKey, v bpfFlow) {
		if f := flowOf(k, v, 0); f.ToVIP && ends(s.lb.ends(f)) {
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
