package ebpf

import (
	"errors"
	"time"

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
	return errors.Join(d.sweepSessions(now), d.sweepFlows(now))
}

func (d *Dataplane) sweepSessions(now uint32) error {
	m, gone := d.store.t[bpfMapSessionsV1], map[bpfSessionKey]bpfSession{}
	count, err := d.beginCount(bpfMapSessionsV1)
	if err != nil {
		return err
	}
	rows, err := pinned.Walk(m, func(k bpfSessionKey, v bpfSession) {
		if sessionOver(k, v, now) {
			gone[k] = v
		}
	})
	swept, failed := pinned.DeleteSame(m, gone, func(is, was bpfSession) bool { return is.Seen == was.Seen && is.State == was.State })
	return d.swept(bpfMapSessionsV1, count, rows-swept, err, failed)
}

func (d *Dataplane) sweepFlows(now uint32) error {
	m := d.store.t[bpfMapFlowsV4]
	count, err := d.beginCount(bpfMapFlowsV4)
	if err != nil {
		return err
	}
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
	swept, failed := pinned.DeleteSame(m, gone, func(is, was bpfFlow) bool { return is.Seen == was.Seen && is.State == was.State })
	return d.swept(bpfMapFlowsV4, count, rows-swept, err, failed)
}

// swept takes note of how many rows a map has left, unless it could not be read.
func (d *Dataplane) swept(name string, count counting, left int, read, failed error) error {
	if read == nil {
		count.end(left)
	}
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	d.store.rows[name] = left
	return mapError(name, errors.Join(read, failed))
}

// answers is the row of the other direction of a flow to a VIP.
func (f Flow) answers() bpfFlowKey {
	return kernelFlowKey(FlowKey{VNI: f.Key.VNI, Protocol: f.Key.Protocol, Src: f.Becomes, Dst: f.Key.Src, Tap: f.Key.Tap})
}
