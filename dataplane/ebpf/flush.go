package ebpf

import (
	"errors"
	"slices"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// flushes tells whether a VIP's flows end with their backends (Load_Balancer.options:ct_flush).
func flushes(v bpfVip) bool { return bpfVipFlags(v.Flags)&bpfVipFlagsVIP_FLUSH != 0 }

// leaves tells whether flows of a VIP that has them end have to be looked for: a backend has
// left it, or may have before it had them end.
func (b *balancing) leaves(old, now bpfVip) bool {
	has := b.members(now.Table)
	return !flushes(old) || slices.ContainsFunc(b.members(old.Table), func(had backendKey) bool { return !slices.Contains(has, had) })
}

// ends of a client's flow are its VIP and its backend. A VIP of all ports has backends of all
// ports, and beside it there may be others of its address: a flow tells which it is of.
func (f Flow) ends() (intent.VIPKey, backendKey) {
	vip := intent.VIPKey{VNI: f.Key.VNI, Protocol: f.Key.Protocol, Addr: f.Key.Dst.Addr(), Port: f.Key.Dst.Port()}
	backend := backendKey{vip.VNI, vip.Protocol, f.Becomes.Addr(), f.Becomes.Port()}
	if f.AllPorts {
		vip.Port, backend.port = 0, 0
	}
	return vip, backend
}

// emptied tells whether a row is that of a VIP that is being deleted.
func emptied(v bpfVip) bool { return v.Table == 0 && bpfVipFlags(v.Flags) == bpfVipFlagsVIP_FLUSH }

// emptied tells the same of the VIP of a flow that names no backend of its own: one that was left
// to OVN, or answers alone. What was of all ports is of a port's own VIP as soon as there is one.
func (b *balancing) emptied(f Flow) bool {
	end := f.Becomes
	if f.OVN {
		end = f.Key.Dst
	}
	k := vipKernelKey(intent.VIPKey{VNI: f.Key.VNI, Protocol: f.Key.Protocol, Addr: end.Addr(), Port: end.Port()})
	if _, own := b.vips[k]; !own {
		k.Port = 0
	}
	return emptied(b.vips[k])
}

// endFlows ends the flows of VIPs that lead to none of their backends, if some are to end.
// What fails is tried again with the next row.
func (s *store) endFlows() error {
	if len(s.lb.ended) == 0 {
		return nil
	}
	has := map[intent.VIPKey]map[backendKey]bool{}
	for k := range s.lb.ended {
		key := vipKey(k)
		has[key] = map[backendKey]bool{}
		for _, b := range s.lb.members(s.lb.vips[k].Table) {
			has[key][b] = true
		}
	}
	pinned.Settle() // a program may be about to begin a flow by what a row was
	err := s.endWhich(func(vip intent.VIPKey, backend backendKey) bool {
		its, ends := has[vip]
		return ends && !its[backend]
	})
	if err == nil {
		clear(s.lb.ended)
	}
	return err
}

// endLeft ends what another process has left: it may have written a VIP and ended before it
// came to its flows.
func (s *store) endLeft() error {
	if s.readOnly {
		return nil
	}
	for k, v := range s.lb.vips {
		if flushes(v) {
			s.lb.ended[k] = true
		}
	}
	return s.endFlows()
}

// endWhich removes the rows of flows from VIPs to backends, in both directions, and those of VIPs
// that are emptied.
func (s *store) endWhich(ends func(intent.VIPKey, backendKey) bool) error {
	sessions := map[bpfSessionKey]bpfSession{}
	_, err := pinned.Walk(s.t[bpfMapSessionsV1], func(k bpfSessionKey, v bpfSession) {
		if ends(sessionOf(k, v, 0).ends()) {
			sessions[k] = v
		}
	})
	// The client's port may have another flow by now.
	_, failed := pinned.DeleteSame(s.t[bpfMapSessionsV1], sessions, func(is, was bpfSession) bool {
		return is.Vip == was.Vip && is.VipPort == was.VipPort && is.Backend == was.Backend && is.Port == was.Port
	})
	err = mapError(bpfMapSessionsV1, errors.Join(err, failed))
	flows := map[bpfFlowKey]bpfFlow{}
	_, walked := pinned.Walk(s.t[bpfMapFlowsV4], func(k bpfFlowKey, v bpfFlow) {
		switch f := flowOf(k, v, 0); {
		case f.ToVIP && ends(f.ends()):
			flows[k], flows[f.answers()] = v, bpfFlow{Kind: uint8(bpfFlowKindFLOW_TO_CLIENT), Addr: k.Dst, Port: uint16(k.Ports >> 16)}
		case !f.ToVIP && !f.Direct && s.lb.emptied(f):
			flows[k] = v
		}
	})
	// The key of answers may be another VIP's, or a connection's without one (rows_end in balance.h).
	same := func(is, was bpfFlow) bool { return is.Kind == was.Kind && is.Addr == was.Addr && is.Port == was.Port }
	_, failed = pinned.DeleteSame(s.t[bpfMapFlowsV4], flows, same)
	return errors.Join(err, mapError(bpfMapFlowsV4, errors.Join(walked, failed)))
}
