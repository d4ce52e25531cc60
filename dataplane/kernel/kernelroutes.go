package kernel

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// Routes is the driver of the destinations of VRFs on the kernel path.
type Routes struct{ p *Path }

var _ reconcile.Driver[intent.RouteKey, intent.Route] = Routes{}

// Routes gives the driver of intent.Route for VRFs on the kernel path.
func (p *Path) Routes() Routes { return Routes{p} }

// List has a route with the zero value if it is not as Apply leaves it, or if
// somebody else has one to the same destination.
func (d Routes) List(context.Context) (map[intent.RouteKey]intent.Route, error) {
	out := map[intent.RouteKey]intent.Route{}
	err := d.p.look(takeFIB, func(s *snapshot, f *fib) error {
		e := d.p.newEncoder(s, f)
		for table, vni := range tenantTables(s, f) {
			_, made := s.vrf(vni)
			foreign := foreignPrefixes(f.tables[table])
			for _, r := range f.tables[table] {
				if r.protocol != RouteProtocol || r.metric != RouteMetric {
					continue
				}
				key := intent.RouteKey{VNI: vni, Prefix: r.prefix}
				out[key] = intent.Route{}
				if made && foreign[r.prefix] == 0 {
					out[key] = e.read(key, r)
				}
			}
		}
		d.p.listedRoutes(out, f, e)
		return nil
	})
	return out, err
}

// tenantTables are the tables of VRFs, and what is left of one.
func tenantTables(s *snapshot, f *fib) map[uint32]intent.VNI {
	out := map[uint32]intent.VNI{}
	for mark, l := range s.byMark {
		vni, _, ok := vrfOfMark(mark)
		if vrf, is := l.(*netlink.Vrf); ok && is {
			out[vrf.Table] = vni
		}
	}
	for _, table := range stranded(s, f) {
		out[table] = intent.VNI(table)
	}
	return out
}

// foreignPrefixes are the destinations of others' routes and their protocols.
func foreignPrefixes(routes []fibRoute) map[netip.Prefix]uint8 {
	out := map[netip.Prefix]uint8{}
	for _, r := range routes {
		switch r.kind {
		case unix.RTN_LOCAL, unix.RTN_MULTICAST, unix.RTN_BROADCAST, unix.RTN_ANYCAST:
			continue // of devices, not of a routing daemon
		}
		if r.protocol != RouteProtocol {
			out[r.prefix] = r.protocol
		}
	}
	return out
}

// Apply makes routes; what a route leads through is made before it.
func (d Routes) Apply(_ context.Context, rows []reconcile.Row[intent.RouteKey, intent.Route]) []error {
	errs := make([]error, len(rows))
	err := d.p.look(takeDevices, func(s *snapshot, f *fib) error {
		e := d.p.newEncoder(s, f)
		foreign := map[intent.VNI]map[netip.Prefix]uint8{}
		for i, r := range rows {
			errs[i] = d.p.forwardAddress(e, r.Key, r.Value)
		}
		for i, r := range rows {
			if errs[i] != nil {
				continue
			}
			if err := d.apply(e, foreign, r.Key, r.Value); err != nil {
				errs[i] = fmt.Errorf("route %s: %w", r.Key, err)
			}
		}
		return d.p.prune(e)
	})
	return all(errs, err)
}

func (d Routes) apply(e *encoder, foreign map[intent.VNI]map[netip.Prefix]uint8, key intent.RouteKey, route intent.Route) error {
	vrf, ok := e.s.vrf(key.VNI)
	if !ok {
		return reconcile.Unchanged(fmt.Errorf("vrf-%d: %w", key.VNI, reconcile.ErrNotReady))
	}
	if key.Prefix.Addr().Is6() {
		if err := forwarding6(); err != nil {
			return err
		}
	}
	// A route that was ours when it was last looked at is replaced without another
	// look at the whole table.
	if !d.p.knows(key) {
		others, looked := foreign[key.VNI]
		if !looked {
			routes, err := tableRoutes(vrf.Table)
			if err != nil {
				return err
			}
			others = foreignPrefixes(routes)
			foreign[key.VNI] = others
		}
		if protocol, there := others[key.Prefix]; there {
			return fmt.Errorf("table %d has a route of protocol %d to it: %w", vrf.Table, protocol, reconcile.ErrForeign)
		}
	}
	r, needs, err := e.encode(key, route)
	if err != nil {
		return err
	}
	for _, n := range needs {
		if err := d.p.provide(e, n); err != nil {
			return err
		}
	}
	if err := r.replace(e.s.h); err != nil {
		return err
	}
	d.p.remember(key, route)
	return d.p.dummyAddress(e, vrf.Table, key, route)
}

// Delete removes routes of ours, and what only they lead through.
func (d Routes) Delete(_ context.Context, keys []intent.RouteKey) []error {
	errs := make([]error, len(keys))
	err := d.p.look(takeDevices, func(s *snapshot, f *fib) error {
		e := d.p.newEncoder(s, f)
		for i, key := range keys {
			table, ok := s.tableOf(key.VNI)
			r := fibRoute{table: table, prefix: key.Prefix, protocol: RouteProtocol, metric: RouteMetric}
			if ok {
				errs[i] = removeRoute(s.h, r)
			}
			if errs[i] != nil {
				continue
			}
			d.p.remember(key, intent.Route{})
			errs[i] = d.p.dummyAddress(e, table, key, intent.Route{})
		}
		return d.p.prune(e)
	})
	return all(errs, err)
}

// forwardAddress takes away the route that makes an address of lo-<vni> the node's
// own, which is back when the device was down. The kernel takes no route through
// such an address: those of a gateway port's are taken back first, for all.
func (p *Path) forwardAddress(e *encoder, key intent.RouteKey, route intent.Route) error {
	l := e.s.byMark[dummyOf(key.VNI).mark]
	vrf, ok := e.s.vrf(key.VNI)
	if l == nil || !ok || !key.IsHost() || !p.config.Dummy || route.Kind != intent.RouteLocal {
		return nil
	}
	return removeRoute(e.s.h, localRoute(key.Prefix.Addr(), l.Attrs().Index, vrf.Table))
}

// dummyAddress puts the address of a local route on lo-<vni>, or takes it off.
func (p *Path) dummyAddress(e *encoder, table uint32, key intent.RouteKey, route intent.Route) error {
	l := e.s.byMark[dummyOf(key.VNI).mark]
	if l == nil || !key.IsHost() || !p.config.Dummy {
		return nil
	}
	if route.Kind == intent.RouteLocal {
		return bareAddress(e.s.h, l, key.Prefix.Addr(), unix.RT_SCOPE_UNIVERSE, table)
	}
	return removeAddress(e.s.h, l, key.Prefix.Addr())
}

// retarget moves the local routes that lead to a gateway port to its address and
// MTU of now.
func (d Gateways) retarget(s *snapshot, f *fib, end netlink.Link, g intent.KernelGateway) error {
	vrf, ok := s.vrf(g.VNI)
	if !ok {
		return nil
	}
	routes, err := tableRoutes(vrf.Table)
	if err != nil {
		return err
	}
	for _, r := range routes {
		if r.protocol != RouteProtocol || r.metric != RouteMetric || len(r.hops) != 1 || r.hops[0].ifindex != end.Attrs().Index ||
			f.neighbours[neighbour{end.Attrs().Index, r.hops[0].gateway}] != g.Key.MAC {
			continue
		}
		now, err := f.localRouteTo(r.table, r.prefix, end, g)
		if err != nil {
			return err
		}
		if !now.equal(&r) {
			if err := now.replace(s.h); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *fib) localRouteTo(table uint32, prefix netip.Prefix, end netlink.Link, g intent.KernelGateway) (fibRoute, error) {
	via, err := f.gatewayHop(end.Attrs().Index, g, prefix.Addr().Is6())
	if err != nil {
		return fibRoute{}, err
	}
	return fibRoute{
		table: table, prefix: prefix, kind: unix.RTN_UNICAST, protocol: RouteProtocol, metric: RouteMetric,
		mtu: uint32(g.MTU), locked: g.MTU != 0, hops: []hop{{ifindex: end.Attrs().Index, gateway: via, onlink: true}},
	}, nil
}

// knows tells whether a route was ours when it was last listed or applied.
func (p *Path) knows(key intent.RouteKey) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.routes[key]
	return ok
}

// remember counts what the routes lead through; the zero value forgets one.
func (p *Path) remember(key intent.RouteKey, route intent.Route) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.reaches(key, p.routes[key]) {
		if p.users[r]--; p.users[r] == 0 {
			delete(p.users, r)
			p.unused[r] = true
		}
	}
	delete(p.routes, key)
	if route != (intent.Route{}) {
		p.routes[key] = route
	}
	for _, r := range p.reaches(key, route) {
		p.users[r]++
		delete(p.unused, r)
	}
}

// listedRoutes begins the counts anew: what nothing uses is left from a crash.
func (p *Path) listedRoutes(routes map[intent.RouteKey]intent.Route, f *fib, e *encoder) {
	p.mu.Lock()
	p.routes, p.users, p.unused = map[intent.RouteKey]intent.Route{}, map[reach]int{}, map[reach]bool{}
	p.mu.Unlock()
	whole := true
	for key, route := range routes {
		if route == (intent.Route{}) {
			whole = false
			continue
		}
		p.remember(key, route)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// While a route is not understood nothing that it may lead through goes.
	p.listed = whole
	for _, r := range slices.Collect(maps.Keys(e.reachable())) {
		if p.users[r] == 0 {
			p.unused[r] = true
		}
	}
}
