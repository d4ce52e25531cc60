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
	return &policyDriver{speaker: s, set: map[intent.VNI]intent.VRFPolicy{}, listed: map[intent.VNI]intent.VRFPolicy{}}
}

// policySetter is what the driver needs of the speaker.
type policySetter interface {
	SetPolicies(map[intent.VNI]intent.VRFPolicy) map[intent.VNI]error
}

// policyDriver sets all policies at once, as the speaker takes them.
type policyDriver struct {
	speaker policySetter
	// set is what the speaker was given, listed what it has done: the routes of a
	// VRF have followed its policy. Of one that has failed it is the zero value.
	set, listed map[intent.VNI]intent.VRFPolicy
}

// List implements reconcile.Driver.
func (d *policyDriver) List(context.Context) (map[intent.VNI]intent.VRFPolicy, error) {
	return maps.Clone(d.listed), nil
}

// Apply implements reconcile.Driver.
func (d *policyDriver) Apply(_ context.Context, rows []reconcile.Row[intent.VNI, intent.VRFPolicy]) []error {
	for _, r := range rows {
		d.set[r.Key] = r.Value
	}
	failed := d.speaker.SetPolicies(maps.Clone(d.set))
	errs := make([]error, len(rows))
	for i, r := range rows {
		d.listed[r.Key] = r.Value
		if errs[i] = failed[r.Key]; errs[i] != nil {
			d.listed[r.Key] = intent.VRFPolicy{}
		}
	}
	return reconcile.Results(errs)
}

// Delete implements reconcile.Driver.
func (d *policyDriver) Delete(_ context.Context, keys []intent.VNI) []error {
	for _, k := range keys {
		delete(d.set, k)
	}
	failed := d.speaker.SetPolicies(maps.Clone(d.set))
	errs := make([]error, len(keys))
	for i, k := range keys {
		delete(d.listed, k)
		if errs[i] = failed[k]; errs[i] != nil {
			d.listed[k] = intent.VRFPolicy{}
		}
	}
	return reconcile.Results(errs)
}
