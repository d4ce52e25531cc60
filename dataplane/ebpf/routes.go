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

// Routes drives the maps hosts and prefixes, with the rows of nexthops and
// groups that they refer to.
type Routes struct{ s *store }

// Routes is the driver of the table Routes.
func (d *Dataplane) Routes() *Routes { return &Routes{d.store} }

// routeFixed are the bits of a prefix key before the address.
const routeFixed = 32

func hostKey(k intent.RouteKey) bpfHostKey {
	return bpfHostKey{Vni: uint32(k.VNI), Addr: k.Prefix.Addr().As16()}
}

func prefix4Key(k intent.RouteKey) bpfPrefix4Key {
	return bpfPrefix4Key{Prefixlen: routeFixed + uint32(k.Prefix.Bits()), Vni: uint32(k.VNI), Addr: be32(k.Prefix.Addr())}
}

func prefix6Key(k intent.RouteKey) bpfPrefix6Key {
	return bpfPrefix6Key{Prefixlen: routeFixed + uint32(k.Prefix.Bits()), Vni: uint32(k.VNI), Addr: k.Prefix.Addr().As16()}
}

// eachRoute reads the three maps.
func (s *store) eachRoute(each func(intent.RouteKey, bpfRoute)) error {
	n, err := pinned.Walk(s.t[bpfMapHostsV1], func(k bpfHostKey, r bpfRoute) {
		each(intent.NewHostKey(intent.VNI(k.Vni), from16(k.Addr)), r)
	})
	s.rows[bpfMapHostsV1] = n
	_, err4 := pinned.Walk(s.t[bpfMapPrefixes4V1], func(k bpfPrefix4Key, r bpfRoute) {
		each(intent.RouteKey{VNI: intent.VNI(k.Vni), Prefix: netip.PrefixFrom(fromBE32(k.Addr), int(k.Prefixlen)-routeFixed)}, r)
	})
	_, err6 := pinned.Walk(s.t[bpfMapPrefixes6V1], func(k bpfPrefix6Key, r bpfRoute) {
		each(intent.RouteKey{VNI: intent.VNI(k.Vni), Prefix: netip.PrefixFrom(netip.AddrFrom16(k.Addr), int(k.Prefixlen)-routeFixed)}, r)
	})
	return errors.Join(mapError(bpfMapHostsV1, err), mapError(bpfMapPrefixes4V1, err4), mapError(bpfMapPrefixes6V1, err6))
}

// List reads the maps. A route that refers to a row that is not its VRF's is
// listed with the zero value.
func (r *Routes) List(context.Context) (map[intent.RouteKey]intent.Route, error) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	out := make(map[intent.RouteKey]intent.Route, r.s.rows[bpfMapHostsV1]+len(r.s.prefixes4)+len(r.s.prefixes6))
	err := r.s.eachRoute(func(k intent.RouteKey, v bpfRoute) { out[k] = r.s.routeOf(k, v) })
	return out, err
}

func (s *store) routeOf(k intent.RouteKey, v bpfRoute) intent.Route {
	switch bpfRouteKind(v.Kind) {
	case bpfRouteKindROUTE_LOCAL, bpfRouteKindROUTE_VIP, bpfRouteKindROUTE_BACKEND:
		e, ok := s.entries.keys[v.Ref]
		if l, live := s.live[e.gateway]; ok && live && l.row == v.Ref && mayRefer(k.VNI, e.vni) {
			return intent.Route{Key: k, Kind: intent.RouteLocal, Gateway: e.gateway, VIP: v.isVIP()}
		}
	case bpfRouteKindROUTE_REMOTE:
		if h, ok := s.nexthops.keys[v.Ref]; ok && h.owner == k.VNI {
			return intent.Route{Key: k, Kind: intent.RouteRemote, NextHops: intent.NewNextHopSet(h.hop)}
		}
	case bpfRouteKindROUTE_GROUP:
		if g, ok := s.groups.keys[v.Ref]; ok && g.owner == k.VNI {
			return intent.Route{Key: k, Kind: intent.RouteRemote, NextHops: g.hops}
		}
	case bpfRouteKindROUTE_BLOCK:
		return intent.Route{Key: k, Kind: intent.RouteBlock}
	}
	return intent.Route{}
}

// isPlainLocal tells whether the route is ROUTE_LOCAL: of an address without VIPs.
func (v bpfRoute) isPlainLocal() bool { return bpfRouteKind(v.Kind) == bpfRouteKindROUTE_LOCAL }

// isVIP tells whether the route is ROUTE_VIP.
func (v bpfRoute) isVIP() bool { return bpfRouteKind(v.Kind) == bpfRouteKindROUTE_VIP }

// isBackend tells whether the route is ROUTE_BACKEND.
func (v bpfRoute) isBackend() bool { return bpfRouteKind(v.Kind) == bpfRouteKindROUTE_BACKEND }

// isLocal tells whether the route leads into OVN.
func (v bpfRoute) isLocal() bool {
	return v.isPlainLocal() || v.isVIP()
}

// adoptRoutes copies the tries and counts all routes as references.
func (s *store) adoptRoutes() error {
	err := s.eachRoute(func(k intent.RouteKey, v bpfRoute) {
		switch {
		case k.IsHost():
		case k.Prefix.Addr().Is4():
			s.prefixes4[prefix4Key(k)] = v
		default:
			s.prefixes6[prefix6Key(k)] = v
		}
		s.retainRef(v)
		s.follow(k, bpfRoute{}, v)
		if !s.readOnly {
			s.front.adopt(frontKey(k), v)
			s.vrfs.routes[lengthOf(k)]++
		}
	})
	s.rows[bpfMapPrefixes4V1], s.rows[bpfMapPrefixes6V1] = len(s.prefixes4), len(s.prefixes6)
	err = errors.Join(err, s.eachBackendRoute(func(_ intent.RouteKey, v bpfRoute) { s.retainRef(v) }))
	if err != nil || s.readOnly {
		return err
	}
	s.front.settle()
	_, err = pinned.Walk(s.t[bpfMapVrfsV2], func(vni uint32, r bpfVrf) { s.vrfs.vrfs[intent.VNI(vni)] = r })
	if err != nil {
		return mapError(bpfMapVrfsV2, err)
	}
	s.vrfs.settle()
	return nil
}

func (s *store) retainRef(v bpfRoute) {
	switch bpfRouteKind(v.Kind) {
	case bpfRouteKindROUTE_LOCAL, bpfRouteKindROUTE_VIP, bpfRouteKindROUTE_BACKEND:
		s.entries.retain(v.Ref)
	case bpfRouteKindROUTE_REMOTE:
		s.nexthops.retain(v.Ref)
	case bpfRouteKindROUTE_GROUP:
		s.groups.retain(v.Ref)
	}
}

func (s *store) releaseRef(v bpfRoute) error {
	switch bpfRouteKind(v.Kind) {
	case bpfRouteKindROUTE_LOCAL, bpfRouteKindROUTE_VIP, bpfRouteKindROUTE_BACKEND:
		return s.releaseEntry(v.Ref)
	case bpfRouteKindROUTE_REMOTE:
		return s.releaseNextHop(v.Ref)
	case bpfRouteKindROUTE_GROUP:
		return s.releaseGroup(v.Ref)
	}
	return nil
}

// mayRefer tells whether a route of a VRF may lead to a gateway of another: one of
// the default VRF to any, since its addresses may be behind gateways of tenants.
func mayRefer(vni, gateway intent.VNI) bool { return vni == gateway || vni == intent.DefaultVRF }

// acquireRef makes the kernel's value of a route, with a reference of its own.
func (s *store) acquireRef(r intent.Route) (v bpfRoute, err error) {
	switch r.Kind {
	case intent.RouteBlock:
		return bpfRoute{Kind: uint32(bpfRouteKindROUTE_BLOCK)}, nil
	case intent.RouteLocal:
		l, ok := s.live[r.Gateway]
		if !ok || !mayRefer(r.Key.VNI, l.vni) {
			return v, fmt.Errorf("for gateway %s of VRF %d: %w", r.Gateway, r.Key.VNI, reconcile.ErrNotReady)
		}
		kind := bpfRouteKindROUTE_LOCAL
		if r.VIP {
			kind = bpfRouteKindROUTE_VIP
		}
		s.entries.retain(l.row)
		return bpfRoute{Kind: uint32(kind), Ref: l.row}, nil
	case intent.RouteRemote:
		if r.Key.VNI == intent.DefaultVRF {
			return v, errors.New("a remote route of the default VRF: its way out are the host's routes")
		}
	default:
		return v, fmt.Errorf("unknown kind %d", r.Kind)
	}
	switch r.NextHops.Len() {
	case 0:
		return v, errors.New("a remote route without a next hop")
	case 1:
		row, err := s.acquireNextHop(r.Key.VNI, r.NextHops.All()[0])
		return bpfRoute{Kind: uint32(bpfRouteKindROUTE_REMOTE), Ref: row}, err
	}
	row, err := s.acquireGroup(r.Key.VNI, r.NextHops)
	return bpfRoute{Kind: uint32(bpfRouteKindROUTE_GROUP), Ref: row}, err
}

// lookupRoute finds the row of exactly this destination.
func (s *store) lookupRoute(k intent.RouteKey) (v bpfRoute, ok bool, err error) {
	switch {
	case k.IsHost():
		err = s.t[bpfMapHostsV1].Lookup(hostKey(k), &v)
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return v, false, nil
		}
		return v, err == nil, mapError(bpfMapHostsV1, err)
	case k.Prefix.Addr().Is4():
		v, ok = s.prefixes4[prefix4Key(k)]
	default:
		v, ok = s.prefixes6[prefix6Key(k)]
	}
	return v, ok, nil
}

func checkRoute(k intent.RouteKey) error {
	if !k.VNI.ValidVRF() {
		return fmt.Errorf("the VNI is outside of 1..%d", intent.MaxVNI)
	}
	if !k.Prefix.IsValid() || k != intent.NewRouteKey(k.VNI, k.Prefix) {
		return fmt.Errorf("%s is no masked prefix", k.Prefix)
	}
	return nil
}

// Delete removes rows and what only they referred to.
func (r *Routes) Delete(_ context.Context, keys []intent.RouteKey) []error {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	var out results
	for i, k := range keys {
		if err := r.s.deleteRoute(k); err != nil {
			out.set(len(keys), i, fmt.Errorf("route %s: %w", k, err))
		}
	}
	return out
}

func (s *store) deleteRoute(k intent.RouteKey) error {
	if checkRoute(k) != nil {
		return nil
	}
	old, had, err := s.lookupRoute(k)
	if err != nil || !had {
		return err
	}
	s.front.remove(frontKey(k))
	switch {
	case k.IsHost():
		err = s.drop(bpfMapHostsV1, hostKey(k))
	case k.Prefix.Addr().Is4():
		err = dropTrie(s, bpfMapPrefixes4V1, s.prefixes4, prefix4Key(k))
	default:
		err = dropTrie(s, bpfMapPrefixes6V1, s.prefixes6, prefix6Key(k))
	}
	if err != nil {
		s.front.put(frontKey(k), old, false)
		return err
	}
	s.follow(k, old, bpfRoute{})
	s.vrfs.remove(lengthOf(k))
	if !k.IsHost() {
		s.cache.forget()
	}
	return s.releaseRef(old)
}
