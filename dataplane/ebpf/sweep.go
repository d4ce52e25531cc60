package ebpf

import (
	"errors"
	"time"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
)

// closedRest is how long the rows of a connection stay that both sides have ended: for what
// of it is on its way still, as TIME-WAIT does.
const closedRest = time.Minute

// SweepFlows removes the rows of flows that no program takes for known ones any more, and of
// connections that both sides have ended: when the map is full, programs overwrite the rows
// that were not seen for the longest time, and those may be of flows that go on.
func (d *Dataplane) SweepFlows() error {
	now, err := monotonic()
	if err != nil {
		return err
	}
	m := d.store.t[bpfMapFlowsV3]
	ended, gone := map[bpfFlowKey]bpfFlow{}, map[bpfFlowKey]bpfFlow{}
	rows, err := pinned.Walk(m, func(k bpfFlowKey, v bpfFlow) {
		switch f := flowOf(k, v, now); {
		case f.forgotten():
			gone[k] = v
		case f.Ending && f.Idle > closedRest:
			ended[k] = v
		}
	})
	for k, v := range ended {
		f := flowOf(k, v, now)
		if !f.ToVIP {
			continue
		}
		answers := f.answers()
		if w, both := ended[answers]; both {
			gone[k], gone[answers] = v, w
		}
	}
	for k, v := range gone {
		// A port that is used again has a new flow, by the row of the old one.
		var is bpfFlow
		if failed := m.Lookup(k, &is); failed != nil || is.Seen != v.Seen || is.State != v.State {
			continue
		}
		if failed := m.Delete(k); failed == nil || errors.Is(failed, ebpf.ErrKeyNotExist) {
			rows--
		} else {
			err = errors.Join(err, failed)
		}
	}
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	d.store.rows[bpfMapFlowsV3] = rows
	return mapError(bpfMapFlowsV3, err)
}

// answers is the row of the other direction of a flow to a VIP.
func (f Flow) answers() bpfFlowKey {
	return kernelFlowKey(FlowKey{VNI: f.Key.VNI, Protocol: f.Key.Protocol, Src: f.Becomes, Dst: f.Key.Src, Tap: f.Key.Tap})
}
