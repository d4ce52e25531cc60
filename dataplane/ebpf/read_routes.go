package ebpf

import (
	"errors"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// RouteRow is a route as the maps alone show it.
type RouteRow struct {
	Kind intent.RouteKind
	// Gateway is the logical port that a local route leads into.
	Gateway string
	// NextHops are those of a remote route.
	NextHops intent.NextHopSet
}

// Routes reads all routes.
func (r *Reader) Routes() (map[intent.RouteKey]RouteRow, error) {
	out := map[intent.RouteKey]RouteRow{}
	s := &store{t: r.t, rows: map[string]int{}}
	var errs []error
	err := s.eachRoute(func(k intent.RouteKey, v bpfRoute) {
		row, err := r.route(v)
		if err != nil {
			errs = append(errs, err)
			return
		}
		out[k] = row
	})
	return out, errors.Join(append(errs, err)...)
}

// OlderRoutes reads the remote routes of the maps of an older layout, which forward while this
// build's are filled; none where their layout is another than this build's.
func (d *Dataplane) OlderRoutes() (map[intent.RouteKey]intent.NextHopSet, error) {
	older, err := openReader(d.pins(), []string{bpfMapHostsV1, bpfMapPrefixes4V1, bpfMapPrefixes6V1, bpfMapNamesV1, bpfMapNexthopsV1, bpfMapGroupsV1})
	if errors.Is(err, ErrNotLoaded) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer older.Close()
	routes, err := older.Routes()
	out := map[intent.RouteKey]intent.NextHopSet{}
	for k, r := range routes {
		if r.Kind == intent.RouteRemote {
			out[k] = r.NextHops
		}
	}
	return out, err
}

func (r *Reader) route(v bpfRoute) (RouteRow, error) {
	switch bpfRouteKind(v.Kind) {
	case bpfRouteKindROUTE_LOCAL, bpfRouteKindROUTE_VIP:
		var n bpfGatewayName
		err := r.t[bpfMapNamesV1].Lookup(v.Ref, &n)
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			err = nil
		}
		return RouteRow{Kind: intent.RouteLocal, Gateway: fromChars(n.Port[:min(int(n.PortLen), maxPortName)])}, mapError(bpfMapNamesV1, err)
	case bpfRouteKindROUTE_REMOTE:
		h, err := r.nextHop(v.Ref)
		return RouteRow{Kind: intent.RouteRemote, NextHops: intent.NewNextHopSet(h)}, err
	case bpfRouteKindROUTE_GROUP:
		var g bpfGroup
		if err := r.t[bpfMapGroupsV1].Lookup(v.Ref, &g); err != nil {
			return RouteRow{}, mapError(bpfMapGroupsV1, err)
		}
		var hops []intent.NextHop
		for _, row := range g.Members[:min(int(g.Count), len(g.Members))] {
			h, err := r.nextHop(row)
			if err != nil {
				return RouteRow{}, err
			}
			hops = append(hops, h)
		}
		return RouteRow{Kind: intent.RouteRemote, NextHops: intent.NewNextHopSet(hops...)}, nil
	}
	return RouteRow{Kind: intent.RouteBlock}, nil
}

func (r *Reader) nextHop(row uint32) (intent.NextHop, error) {
	var v bpfNexthop
	if err := r.t[bpfMapNexthopsV1].Lookup(row, &v); err != nil {
		return intent.NextHop{}, mapError(bpfMapNexthopsV1, err)
	}
	return v.hop(), nil
}
