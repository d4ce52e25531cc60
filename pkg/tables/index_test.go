package tables

import (
	"errors"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// A new VRF waits until its index is kept, and so do its route targets and announcements;
// nothing else does. One whose index changes stays as it is meanwhile.
func TestVRFWaitsForItsIndex(t *testing.T) {
	b := newBench()
	kept := map[intent.VNI]bool{1002: true}
	b.Tables.src.Kept = func(vni intent.VNI) bool { return kept[vni] }
	b.want(true)
	b.Pipeline.Update(func() {
		b.UpdateVRFs(map[intent.VNI]intent.VRF{1002: {VNI: 1002, Index: 2}}, nil)
		Of(b, intent.Policies).Update(map[intent.VNI]intent.VRFPolicy{1002: {VNI: 1002, Index: 2}}, nil)
	})
	b.passes(t)
	if len(b.vrfs.rows) != 1 || len(b.policies.rows) != 1 || len(b.announced.rows) != 0 || len(b.routesThere.rows) != 1 {
		t.Fatalf("VRFs %v, policies %v, announced %v, routes %v", b.vrfs.rows, b.policies.rows, b.announced.rows, b.routesThere.rows)
	}
	if ok, err := Of(b, intent.VRFs).State(1001); ok || !errors.Is(err, reconcile.ErrNotReady) {
		t.Errorf("state %t, %v", ok, err)
	}
	kept[1001] = true
	b.Pipeline.Update(b.IndicesKept)
	b.passes(t)
	if len(b.vrfs.rows) != 2 || len(b.announced.rows) != 1 {
		t.Fatalf("VRFs %v, announced %v", b.vrfs.rows, b.announced.rows)
	}
	kept[1001] = false // it has got another one
	b.Pipeline.Update(func() {
		b.UpdateVRFs(map[intent.VNI]intent.VRF{1001: {VNI: 1001, Index: 3}}, nil)
		Of(b, intent.Policies).Update(map[intent.VNI]intent.VRFPolicy{1001: {VNI: 1001, Index: 3}}, nil)
	})
	b.passes(t)
	if b.vrfs.rows[1001].Index != 1 || b.policies.rows[1001].Index != 0 {
		t.Errorf("VRF %v, policy %v", b.vrfs.rows[1001], b.policies.rows[1001])
	}
}
