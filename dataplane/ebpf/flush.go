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

// endFlows removes the rows of flows, in both directions.
func (s *store) endFlows(e endedFlows) error {
	if len(e) == 0 {
		return nil
	}
	taken := func(k intent.VIPKey) bool { _, ok := s.lb.vips[vipKernelKey(k)]; return ok }
	var keys []bpfFlowKey
	_, err := pinned.Walk(s.t[bpfMapFlowsV3], func(k bpfFlowKey, v bpfFlow) {
		if f := flowOf(k, v, 0); f.ToVIP && e.has(f, taken) {
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
