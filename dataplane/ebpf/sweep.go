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
	return d.swept(bpfMapSessionsV1, count, rows, err, sweepRows(m, gone, func(is, was bpfSession) bool { return is.Seen == was.Seen && is.State == was.State }))
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
	return d.swept(bpfMapFlowsV4, count, rows, err, sweepRows(m, gone, func(is, was bpfFlow) bool { return is.Seen == was.Seen && is.State == was.State }))
}

// sweeping is what became of rows that were to go.
type sweeping struct {
	gone int
	err  error
}

// sweepRows removes the rows that are the same as they were when they were read: a port that is
// used again has a new flow, by the row of the old one.
func sweepRows[K comparable, V any](m *ebpf.Map, rows map[K]V, same func(is, was V) bool) (out sweeping) {
	for k, v := range rows {
		var is V
		if failed := m.Lookup(k, &is); failed != nil || !same(is, v) {
			continue
		}
		if failed := m.Delete(k); failed == nil || errors.Is(failed, ebpf.ErrKeyNotExist) {
			out.gone++
		} else {
			out.err = errors.Join(out.err, failed)
		}
	}
	return out
}

// swept takes note of how many rows a map has left.
func (d *Dataplane) swept(name string, count counting, rows int, err error, s sweeping) error {
	if err == nil {
		count.end(rows - s.gone)
	}
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	d.store.rows[name] = rows - s.gone
	return mapError(name, errors.Join(err, s.err))
}

// answers is the row of the other direction of a flow to a VIP.
func (f Flow) answers() bpfFlowKey {
	return kernelFlowKey(FlowKey{VNI: f.Key.VNI, Protocol: f.Key.Protocol, Src: f.Becomes, Dst: f.Key.Src, Tap: f.Key.Tap})
}
