package main

import (
	"context"
	"maps"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// policyDriver makes the VRF policies a table like the others: a policy comes
// before the announcements that use its route targets, and goes after them.
type policyDriver struct {
	speaker bgp.Speaker
	set     map[intent.VNI]intent.VRFPolicy
}

func newPolicyDriver(s bgp.Speaker) *policyDriver {
	return &policyDriver{speaker: s, set: map[intent.VNI]intent.VRFPolicy{}}
}

func (d *policyDriver) List(context.Context) (map[intent.VNI]intent.VRFPolicy, error) {
	return maps.Clone(d.set), nil
}

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

func (d *policyDriver) Delete(_ context.Context, keys []intent.VNI) []error {
	for _, k := range keys {
		delete(d.set, k)
	}
	d.speaker.SetPolicies(maps.Clone(d.set))
	return nil
}
