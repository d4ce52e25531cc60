package ebpf

import (
	"context"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// BackendRoutes drives the map backend_routes.
type BackendRoutes struct{ s *store }

// BackendRoutes is the driver of the table BackendRoutes.
func (d *Dataplane) BackendRoutes() *BackendRoutes { return &BackendRoutes{d.store} }

// BackendRoutes lists the table BackendRoutes.
func (i *Inspection) BackendRoutes() *BackendRoutes { return &BackendRoutes{i.store} }

var _ reconcile.Driver[intent.RouteKey, intent.BackendRoute] = (*BackendRoutes)(nil)

func (s *store) eachBackendRoute(each func(intent.RouteKey, bpfRoute)) error {
	n, err := pinned.Walk(s.t[bpfMapBackendRoutesV1], func(k bpfHostKey, r bpfRoute) {
		each(intent.NewHostKey(intent.VNI(k.Vni), from16(k.Addr)), r)
	})
	s.rows[bpfMapBackendRoutesV1] = n
	return mapError(bpfMapBackendRoutesV1, err)
}

// List reads the map. A row whose gateway is not there is listed with the zero value.
func (b *BackendRoutes) List(context.Context) (map[intent.RouteKey]intent.BackendRoute, error) {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	out := map[intent.RouteKey]intent.BackendRoute{}
	err := b.s.eachBackendRoute(func(k intent.RouteKey, v bpfRoute) {
		out[k] = intent.BackendRoute{}
		if r := b.s.routeOf(k, v); r.Kind == intent.RouteLocal && v.isBackend() {
			out[k] = intent.BackendRoute{Key: k, Gateway: r.Gateway}
		}
	})
	return out, err
}

// Apply writes rows, and releases what their old values referred to.
func (b *BackendRoutes) Apply(_ context.Context, rows []reconcile.Row[intent.RouteKey, intent.BackendRoute]) []error {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	var out results
	for i, r := range rows {
		if err := b.s.applyBackendRoute(r.Key, r.Value); err != nil {
			out.set(len(rows), i, fmt.Errorf("backend route %s: %w", r.Key, err))
		}
	}
	return out
}

func (s *store) applyBackendRoute(k intent.RouteKey, v intent.BackendRoute) error {
	if err := checkRoute(k); err != nil {
		return err
	}
	if !k.IsHost() || k.VNI == intent.DefaultVRF {
		return errors.New("not a host of a tenant's VRF")
	}
	old, had, err := s.lookupBackendRoute(k)
	if err != nil {
		return err
	}
	row, err := s.acquireRef(intent.Route{Key: k, Kind: intent.RouteLocal, Gateway: v.Gateway})
	if err != nil {
		return err
	}
	row.Kind = uint32(bpfRouteKindROUTE_BACKEND)
	if err := s.put(bpfMapBackendRoutesV1, hostKey(k), row); err != nil {
		return joinRelease(err, s.releaseRef(row))
	}
	if had {
		return s.releaseRef(old)
	}
	return nil
}

func (s *store) lookupBackendRoute(k intent.RouteKey) (v bpfRoute, ok bool, err error) {
	err = s.t[bpfMapBackendRoutesV1].Lookup(hostKey(k), &v)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return v, false, nil
	}
	return v, err == nil, mapError(bpfMapBackendRoutesV1, err)
}

// Delete removes rows.
func (b *BackendRoutes) Delete(_ context.Context, keys []intent.RouteKey) []error {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	var out results
	for i, k := range keys {
		if err := b.s.deleteBackendRoute(k); err != nil {
			out.set(len(keys), i, fmt.Errorf("backend route %s: %w", k, err))
		}
	}
	return out
}

func (s *store) deleteBackendRoute(k intent.RouteKey) error {
	old, had, err := s.lookupBackendRoute(k)
	if err != nil || !had {
		return err
	}
	if err := s.drop(bpfMapBackendRoutesV1, hostKey(k)); err != nil {
		return err
	}
	return s.releaseRef(old)
}
