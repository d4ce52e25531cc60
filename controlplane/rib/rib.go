package rib

import "github.com/ovn-sluice/sluice/pkg/intent"

// Source is where routes come from, in the order of preference.
type Source uint8

// The sources.
const (
	// OVN: local and blocked destinations, of controlplane/evpn.
	OVN Source = iota
	// BGP: destinations behind other nodes, of controlplane/bgp.
	BGP
	// Relay: destinations behind gateway ports that have gone to other nodes, of
	// controlplane/evpn.
	Relay
	sources
)

// RIB holds the routes of each source. It is not safe for use by two goroutines
// at once.
type RIB struct {
	routes [sources]map[intent.RouteKey]body
}

// body is a route without its key, which the map has.
type body struct {
	kind     intent.RouteKind
	vip      bool
	gateway  intent.GatewayKey
	nextHops intent.NextHopSet
}

func bodyOf(r intent.Route) body { return body{r.Kind, r.VIP, r.Gateway, r.NextHops} }

func (b body) route(k intent.RouteKey) intent.Route {
	return intent.Route{Key: k, Kind: b.kind, VIP: b.vip, Gateway: b.gateway, NextHops: b.nextHops}
}

// New returns an empty RIB.
func New() *RIB {
	r := &RIB{}
	for i := range r.routes {
		r.routes[i] = map[intent.RouteKey]body{}
	}
	return r
}

// Update changes one source's routes and returns the rows of the joined table
// that are to be put, and the keys that have none any more.
func (r *RIB) Update(s Source, set map[intent.RouteKey]intent.Route, gone []intent.RouteKey) (map[intent.RouteKey]intent.Route, []intent.RouteKey) {
	own := r.routes[s]
	for _, k := range gone {
		delete(own, k)
	}
	for k, v := range set {
		own[k] = bodyOf(v)
	}
	put := make(map[intent.RouteKey]intent.Route, len(set))
	var removed []intent.RouteKey
	for k := range set {
		put[k], _ = r.Best(k)
	}
	for _, k := range gone {
		if best, ok := r.Best(k); ok {
			put[k] = best
		} else {
			removed = append(removed, k)
		}
	}
	return put, removed
}

// Has tells whether a source has a route for a destination.
func (r *RIB) Has(s Source, k intent.RouteKey) bool { _, ok := r.routes[s][k]; return ok }

// Imported tells whether the row of a destination is BGP's.
func (r *RIB) Imported(k intent.RouteKey) bool { return r.Has(BGP, k) && !r.Has(OVN, k) }

// EachImported calls each for the destinations whose row is BGP's.
func (r *RIB) EachImported(each func(intent.RouteKey)) {
	for k := range r.routes[BGP] {
		if !r.Has(OVN, k) {
			each(k)
		}
	}
}

// Best is the row of a destination.
func (r *RIB) Best(k intent.RouteKey) (intent.Route, bool) {
	for _, routes := range r.routes {
		if b, ok := routes[k]; ok {
			return b.route(k), true
		}
	}
	return intent.Route{}, false
}
