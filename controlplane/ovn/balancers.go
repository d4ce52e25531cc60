package ovn

import (
	"cmp"
	"slices"
)

// balancerList is what BalancersOf and BalancersOn give.
type balancerList struct {
	rows  []LoadBalancer
	known bool
}

// Balancer finds a row of Load_Balancer.
func (r *Rows) Balancer(id UUID) (LoadBalancer, bool) {
	b, ok := r.balancers[id]
	return b, ok
}

// CountBalancers counts the rows of Load_Balancer.
func (r *Rows) CountBalancers() int { return len(r.balancers) }

// BalancersNamed are the load balancers that are followed and have a name, or that _uuid,
// by _uuid. Octavia has a row for each protocol, all with one name.
func (r *Rows) BalancersNamed(name string) []LoadBalancer {
	var out []LoadBalancer
	for _, b := range r.balancers {
		if b.Name == name || string(b.UUID) == name {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b LoadBalancer) int { return cmp.Compare(a.UUID, b.UUID) })
	return out
}

// BalancersOf lists the load balancers of a router and of its groups, by name. It is false
// when they are unknown: no Northbound session, or not all rows are there.
func (r *Rows) BalancersOf(datapath UUID) ([]LoadBalancer, bool) {
	lr, ok := r.Router(datapath)
	if !ok || len(r.globals) == 0 {
		return nil, false
	}
	return r.balancersAt(datapath, lr.LoadBalancers, lr.LoadBalancerGroups)
}

// BalancersOn is BalancersOf of a switch, with BalanceBySouthbound those that Southbound has.
func (r *Rows) BalancersOn(datapath UUID) ([]LoadBalancer, bool) {
	if r.south.follows {
		return r.southBalancers(datapath), true
	}
	sw, ok := r.Switch(datapath)
	if !ok || len(r.globals) == 0 {
		return nil, false
	}
	return r.balancersAt(datapath, sw.LoadBalancers, sw.LoadBalancerGroups)
}

func (r *Rows) balancersAt(datapath UUID, balancers, groups []UUID) ([]LoadBalancer, bool) {
	list, done := r.lists[datapath]
	if !done {
		list.rows, list.known = r.balancersOf(balancers, groups)
		r.lists[datapath] = list
	}
	return list.rows, list.known
}

func (r *Rows) balancersOf(balancers, groupIDs []UUID) ([]LoadBalancer, bool) {
	groups, ok := collect(groupIDs, r.lbGroups)
	if !ok {
		return nil, false
	}
	ids := slices.Clone(balancers)
	for _, g := range groups {
		ids = append(ids, g.LoadBalancers...)
	}
	slices.Sort(ids)
	out, ok := collect(slices.Compact(ids), r.balancers)
	for _, b := range out {
		_, checked := collect(b.HealthChecks, r.checks)
		ok = ok && checked
	}
	slices.SortStableFunc(out, func(a, b LoadBalancer) int { return cmp.Compare(a.Name, b.Name) })
	return out, ok
}

// dangling are the rows that name load balancers that are not there, without these, when all
// that are asked for have come; asked tells which are. References to one are weak: they go with it.
// ovsdb-server 3.1 does not tell of that when the transaction that deletes it changes the same
// column, too.
func (r *Rows) dangling(asked func(table string, id UUID) bool) []Change {
	gone := func(id UUID) bool {
		_, there := r.balancers[id]
		return !there && asked("Load_Balancer", id)
	}
	without := func(list []UUID) []UUID { return slices.DeleteFunc(slices.Clone(list), gone) }
	var out []Change
	for _, lr := range r.routers {
		if slices.ContainsFunc(lr.LoadBalancers, gone) {
			lr.LoadBalancers = without(lr.LoadBalancers)
			out = append(out, Set(lr))
		}
	}
	for _, sw := range r.switches {
		if slices.ContainsFunc(sw.LoadBalancers, gone) {
			sw.LoadBalancers = without(sw.LoadBalancers)
			out = append(out, Set(sw))
		}
	}
	for _, g := range r.lbGroups {
		if slices.ContainsFunc(g.LoadBalancers, gone) {
			g.LoadBalancers = without(g.LoadBalancers)
			out = append(out, Set(g))
		}
	}
	return out
}
