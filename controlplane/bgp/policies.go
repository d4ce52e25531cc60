package bgp

import (
	"context"
	"maps"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// Policies is the speaker as the driver of the table of policies: one comes
// before the announcements that use its route targets, and goes after them.
func (s *GoBGP) Policies() reconcile.Driver[intent.VNI, intent.VRFPolicy] {
	return &policyDriver{speaker: s, set: map[intent.VNI]intent.VRFPolicy{}}
}

// policyDriver sets all policies at once, as the speaker takes them.
type policyDriver struct {
	speaker Speaker
	set     map[intent.VNI]intent.VRFPolicy
}

// List implements reconcile.Driver.
func (d *policyDriver) List(context.Context) (map[intent.VNI]intent.VRFPolicy, error) {
	return maps.Clone(d.set), nil
}

// Apply implements reconcile.Driver.
func (d *policyDriver) Apply(_ context.Context, rows []reconcile.Row[intent.VNI, intent.VRFPolicy]) []error {
	for _, r := range rows {
		d.set[r.Key] = r.Value
	}
	failed := d.speaker.SetPolicies(maps.Clone(d.set))
	errs := make([]error, len(rows))
	for i, r := range rows {
		if errs[i] = failed[r.Key]; errs[i] != nil {
			delete(d.set, r.Key)
		}
	}
	return errs
}

// Delete implements reconcile.Driver.
func (d *policyDriver) Delete(_ context.Context, keys []intent.VNI) []error {
	for _, k := range keys {
		delete(d.set, k)
	}
	d.speaker.SetPolicies(maps.Clone(d.set))
	return nil
}
