package ebpf

import (
	"context"
	"fmt"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// Neighbors drives the map neighbors.
type Neighbors struct{ s *store }

// Neighbors is the driver of the table Neighbors.
func (d *Dataplane) Neighbors() *Neighbors { return &Neighbors{d.store} }

// Neighbors lists the table Neighbors.
func (i *Inspection) Neighbors() *Neighbors { return &Neighbors{i.store} }

var _ reconcile.Driver[intent.NeighborKey, intent.Neighbor] = (*Neighbors)(nil)

func neighborKernelKey(k intent.NeighborKey) bpfNeighborKey {
	return bpfNeighborKey{Scope: uint32(k.Scope), Addr: k.Addr.As16()}
}

// List reads the map.
func (n *Neighbors) List(context.Context) (map[intent.NeighborKey]intent.Neighbor, error) {
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	out := map[intent.NeighborKey]intent.Neighbor{}
	rows, err := pinned.Walk(n.s.t[bpfMapNeighborsV1], func(k bpfNeighborKey, r bpfNeighbor) {
		key := intent.NeighborKey{Scope: intent.VNI(k.Scope), Addr: from16(k.Addr)}
		flags := bpfNeighborFlags(r.Flags)
		out[key] = intent.Neighbor{
			Key: key, MAC: r.Mac, VIP: flags&bpfNeighborFlagsNEIGHBOR_VIP != 0, Answer: flags&bpfNeighborFlagsNEIGHBOR_ANSWER != 0,
			Echo: flags&bpfNeighborFlagsNEIGHBOR_ECHO != 0,
		}
	})
	n.s.rows[bpfMapNeighborsV1] = rows
	return out, mapError(bpfMapNeighborsV1, err)
}

// Apply writes rows.
func (n *Neighbors) Apply(_ context.Context, rows []reconcile.Row[intent.NeighborKey, intent.Neighbor]) []error {
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	var out results
	for i, r := range rows {
		if err := n.apply(r.Value); err != nil {
			out.set(len(rows), i, fmt.Errorf("neighbor %s: %w", r.Key, err))
		}
	}
	return out
}

func (n *Neighbors) apply(v intent.Neighbor) error {
	if !v.Key.Scope.IsSwitch() || !v.Key.Addr.IsValid() || v.MAC.IsZero() && (v.Answer || !v.VIP) {
		return fmt.Errorf("no switch, no address, or no MAC address (%s)", v.MAC)
	}
	row := bpfNeighbor{Mac: v.MAC}
	if v.VIP {
		row.Flags |= uint16(bpfNeighborFlagsNEIGHBOR_VIP)
	}
	if v.Answer {
		row.Flags |= uint16(bpfNeighborFlagsNEIGHBOR_ANSWER)
	}
	if v.Echo {
		row.Flags |= uint16(bpfNeighborFlagsNEIGHBOR_ECHO)
	}
	return n.s.put(bpfMapNeighborsV1, neighborKernelKey(v.Key), row)
}

// Delete removes rows. Flows that are known go on.
func (n *Neighbors) Delete(_ context.Context, keys []intent.NeighborKey) []error {
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	var out results
	for i, k := range keys {
		if err := n.s.drop(bpfMapNeighborsV1, neighborKernelKey(k)); err != nil {
			out.set(len(keys), i, fmt.Errorf("neighbor %s: %w", k, err))
		}
	}
	return out
}
