package ebpf

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// VRFs drives the vrfs map.
type VRFs struct{ s *store }

// VRFs is the driver of the table VRFs.
func (d *Dataplane) VRFs() *VRFs { return &VRFs{d.store} }

// List reads the map.
func (v *VRFs) List(context.Context) (map[intent.VNI]intent.VRF, error) {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	out := map[intent.VNI]intent.VRF{}
	n, err := pinned.Walk(v.s.t[bpfMapVrfsV2], func(vni uint32, r bpfVrf) {
		out[intent.VNI(vni)] = v.value(intent.VNI(vni), r)
	})
	v.s.rows[bpfMapVrfsV2] = n
	return out, mapError(bpfMapVrfsV2, err)
}

// value is a row of the map. One that leads to another device than the VRF has now
// cannot be expressed.
func (v *VRFs) value(vni intent.VNI, r bpfVrf) intent.VRF {
	out := intent.VRF{VNI: vni, Index: uint16(r.Index)}
	if r.Device != 0 {
		out.Path = intent.PathKernel
		if device, ok := v.s.device(vni); !ok || device != r.Device {
			return intent.VRF{}
		}
	}
	return out
}

// device is where the packets of a VRF on the kernel path go.
func (s *store) device(vni intent.VNI) (uint32, bool) {
	if s.devices == nil {
		return 0, false
	}
	i, ok := s.devices.IfIndex(vni)
	return uint32(i), ok && i > 0
}

// Apply writes rows. The counters of a new VRF start at 0. A VRF on the kernel path
// waits for its device.
func (v *VRFs) Apply(_ context.Context, rows []reconcile.Row[intent.VNI, intent.VRF]) []error {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	var out results
	for i, r := range rows {
		if err := v.apply(r.Value); err != nil {
			out.set(len(rows), i, fmt.Errorf("VRF %d: %w", r.Key, err))
		}
	}
	return out
}

// row checks a VRF and makes its row.
func (v *VRFs) row(r intent.VRF) (row bpfVrf, err error) {
	if !r.VNI.ValidVRF() {
		return row, fmt.Errorf("the VNI is outside of 1..%d", intent.MaxVNI)
	}
	if r.VNI == intent.DefaultVRF && r.Path == intent.PathKernel {
		return row, errors.New("the default VRF has no kernel path")
	}
	if r.Index == 0 || uint32(r.Index) > v.s.limits.VRFs {
		return row, fmt.Errorf("index %d is outside of 1..%d: %w", r.Index, v.s.limits.VRFs, ErrFull)
	}
	row.Index = uint32(r.Index)
	if r.Path == intent.PathKernel {
		device, ok := v.s.device(r.VNI)
		if !ok {
			return row, fmt.Errorf("%w for the device of the kernel path", reconcile.ErrNotReady)
		}
		row.Device = device
	}
	return row, nil
}

func (v *VRFs) apply(r intent.VRF) error {
	row, err := v.row(r)
	if err != nil {
		return reconcile.Unchanged(err)
	}
	var old bpfVrf
	if err := v.s.t[bpfMapVrfsV2].Lookup(uint32(r.VNI), &old); err != nil || old.Index != uint32(r.Index) {
		zero := make([]bpfCounter, ebpf.MustPossibleCPU())
		for direction := range uint32(2) {
			if err := v.s.setRow(bpfMapCountersV1, uint32(r.Index)*2+direction, zero); err != nil {
				return err
			}
		}
	}
	if err := v.s.put(bpfMapVrfsV2, uint32(r.VNI), row); err != nil {
		return err
	}
	v.s.vrfs.put(r.VNI, row)
	return nil
}

// Delete removes rows.
func (v *VRFs) Delete(_ context.Context, keys []intent.VNI) []error {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	var out results
	for i, k := range keys {
		if err := v.s.dropVRF(k); err != nil {
			out.set(len(keys), i, fmt.Errorf("VRF %d: %w", k, err))
		}
	}
	return out
}

// VTEPs drives the vteps map.
type VTEPs struct{ s *store }

// VTEPs is the driver of the table VTEPs.
func (d *Dataplane) VTEPs() *VTEPs { return &VTEPs{d.store} }

// List reads the map.
func (v *VTEPs) List(context.Context) (map[netip.Addr]intent.VTEP, error) {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	out := map[netip.Addr]intent.VTEP{}
	n, err := pinned.Walk(v.s.t[bpfMapVtepsV1], func(k bpfVtepKey, _ bpfVtep) {
		out[from16(k.Addr)] = intent.VTEP{Addr: from16(k.Addr)}
	})
	v.s.rows[bpfMapVtepsV1] = n
	return out, mapError(bpfMapVtepsV1, err)
}

// Apply writes rows.
func (v *VTEPs) Apply(_ context.Context, rows []reconcile.Row[netip.Addr, intent.VTEP]) []error {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	var out results
	for i, r := range rows {
		if !r.Key.IsValid() {
			out.set(len(rows), i, fmt.Errorf("VTEP %s: no address", r.Key))
			continue
		}
		if err := v.s.putVTEP(r.Key); err != nil {
			out.set(len(rows), i, fmt.Errorf("VTEP %s: %w", r.Key, err))
		}
	}
	return out
}

// Delete removes rows.
func (v *VTEPs) Delete(_ context.Context, keys []netip.Addr) []error {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	var out results
	for i, k := range keys {
		if !k.IsValid() {
			continue
		}
		if err := v.s.dropVTEP(k); err != nil {
			out.set(len(keys), i, fmt.Errorf("VTEP %s: %w", k, err))
		}
	}
	return out
}
