package controller_test

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// one of the IDs of objects; "" if there is none.
func one[V named](r *random, of map[string]V) string {
	id, _ := pick(r, inOrderOf(of))
	return id
}

// inOrderOf are the IDs in the order of the names: IDs differ with each run of a seed.
func inOrderOf[V named](of map[string]V) []string {
	return slices.SortedFunc(maps.Keys(of), func(a, b string) int { return strings.Compare(of[a].name(), of[b].name()) })
}

type named interface{ name() string }

func (b *balancer) name() string { return b.Name }
func (l *listener) name() string { return l.Name }
func (p *pool) name() string     { return p.Name }
func (m *member) name() string   { return m.Name }

// place is an object's: its load balancer, protocol and IDs.
type place struct{ balancer, protocol, pool, id string }

// objects are the listeners, pools and members that are there, in one order.
func (r *random) objects() (listeners, pools, members []place) {
	for _, lb := range inOrderOf(r.Balancers) {
		for _, protocol := range slices.Sorted(maps.Keys(r.Balancers[lb].Rows)) {
			row := r.Balancers[lb].Rows[protocol]
			for _, id := range inOrderOf(row.Listeners) {
				listeners = append(listeners, place{lb, protocol, "", id})
			}
			for _, pool := range inOrderOf(row.Pools) {
				pools = append(pools, place{lb, protocol, "", pool})
				for _, id := range inOrderOf(row.Pools[pool].Members) {
					members = append(members, place{lb, protocol, pool, id})
				}
			}
		}
	}
	return listeners, pools, members
}

func pick[T any](r *random, list []T) (one T, ok bool) {
	if len(list) == 0 {
		return one, false
	}
	return list[r.IntN(len(list))], true
}

// changes are the ways to make a call, as often as each one is wanted. One that does not fit makes none.
var changes = []struct {
	weight int
	make   func(*random) (call, bool)
}{
	{4, (*random).newBalancer}, {3, (*random).changeBalancer}, {1, (*random).endBalancer},
	{6, (*random).newListener}, {4, (*random).changeListener}, {2, (*random).endListener},
	{6, (*random).newPool}, {3, (*random).changePool}, {1, (*random).endPool},
	{12, (*random).newMember}, {5, (*random).changeMember}, {5, (*random).endMember},
}

// change is a call that is to be done.
func (r *random) change() call {
	total := 0
	for _, c := range changes {
		total += c.weight
	}
	for {
		n := r.IntN(total)
		for _, c := range changes {
			if n -= c.weight; n < 0 {
				if made, ok := c.make(r); ok {
					return made
				}
				break
			}
		}
	}
}

func (r *random) newBalancer() (call, bool) {
	if len(r.Balancers) >= r.balancers {
		return call{}, false
	}
	name := []string{"N1", "N1", "N2", "N3", "N4"}[r.IntN(5)]
	subnet := r.IntN(len(r.Networks[name].Subnets))
	var vip netip.Addr
	if a := r.address(name, subnet); !r.free && r.IntN(2) == 0 && !r.isVIP(a) {
		vip = a
	}
	return r.createBalancer(name, subnet, vip), true
}

// address is one of a network, which no router has.
func (r *random) address(network string, subnet int) netip.Addr {
	raw := r.Networks[network].Prefixes[subnet].Addr().AsSlice()
	raw[len(raw)-1] = byte(10 + r.IntN(40))
	a, _ := netip.AddrFromSlice(raw)
	return a
}

func (r *random) isVIP(a netip.Addr) bool {
	for _, b := range r.Balancers {
		if b.VIP == a {
			return true
		}
	}
	return false
}

func (r *random) changeBalancer() (call, bool) {
	id := one(r, r.Balancers)
	return r.updateBalancer(id, r.IntN(4) > 0), id != ""
}

func (r *random) endBalancer() (call, bool) {
	id := one(r, r.Balancers)
	return r.deleteBalancer(id), id != ""
}

func (r *random) protocol() string { return []string{"tcp", "tcp", "udp", "sctp"}[r.IntN(4)] }

// poolOf is a pool of a row, or none.
func (r *random) poolOf(b *balancer, protocol string) string {
	if row := b.Rows[protocol]; row != nil && r.IntN(4) > 0 {
		return one(r, row.Pools)
	}
	return ""
}

func (r *random) newListener() (call, bool) {
	id, protocol, port := one(r, r.Balancers), r.protocol(), 80+r.IntN(20)
	if id == "" {
		return call{}, false
	}
	b := r.Balancers[id]
	c := r.createListener(id, protocol, port, r.poolOf(b, protocol))
	if row := b.Rows[protocol]; row != nil {
		for _, l := range row.Listeners {
			if l.Port == port {
				return refused(c, 409), true
			}
		}
	}
	return c, true
}

func (r *random) changeListener() (call, bool) {
	listeners, _, _ := r.objects()
	l, ok := pick(r, listeners)
	if !ok {
		return call{}, false
	}
	return r.updateListener(l.balancer, l.protocol, l.id, r.poolOf(r.Balancers[l.balancer], l.protocol), r.IntN(4) > 0), true
}

func (r *random) endListener() (call, bool) {
	listeners, _, _ := r.objects()
	l, ok := pick(r, listeners)
	return r.deleteListener(l.balancer, l.protocol, l.id), ok
}

func (r *random) newPool() (call, bool) {
	listeners, _, _ := r.objects()
	if l, ok := pick(r, listeners); ok && r.IntN(2) == 0 {
		c := r.createPool(l.balancer, l.protocol, l.id)
		if r.Balancers[l.balancer].Rows[l.protocol].Listeners[l.id].Pool != "" {
			return refused(c, 409), true
		}
		return c, true
	}
	id := one(r, r.Balancers)
	return r.createPool(id, r.protocol(), ""), id != ""
}

func (r *random) changePool() (call, bool) {
	_, pools, _ := r.objects()
	p, ok := pick(r, pools)
	return r.updatePool(p.balancer, p.protocol, p.id, r.IntN(4) > 0), ok
}

func (r *random) endPool() (call, bool) {
	_, pools, _ := r.objects()
	p, ok := pick(r, pools)
	return r.deletePool(p.balancer, p.protocol, p.id), ok
}

func (r *random) newMember() (call, bool) {
	_, pools, _ := r.objects()
	p, ok := pick(r, pools)
	if !ok {
		return call{}, false
	}
	network, subnet := []string{"N1", "N2", "N3", "N4"}[r.IntN(4)], 0
	if r.Balancers[p.balancer].VIP.Is6() {
		network, subnet = "N1", 1
	}
	addr := netip.AddrPortFrom(r.address(network, subnet), uint16(8080+r.IntN(3)))
	c := r.createMember(p.balancer, p.protocol, p.id, network, subnet, addr)
	for _, m := range r.Balancers[p.balancer].Rows[p.protocol].Pools[p.id].Members {
		if m.Addr == addr {
			return refused(c, 409), true
		}
	}
	return c, true
}

func (r *random) changeMember() (call, bool) {
	_, _, members := r.objects()
	m, ok := pick(r, members)
	return r.updateMember(m.balancer, m.protocol, m.pool, m.id, r.IntN(5), r.IntN(4) > 0), ok
}

func (r *random) endMember() (call, bool) {
	_, _, members := r.objects()
	m, ok := pick(r, members)
	return r.deleteMember(m.balancer, m.protocol, m.pool, m.id), ok
}

// callFor is a call for an object that was just made.
func (r *random) callFor(c call, id string) call {
	listeners, pools, members := r.objects()
	is := func(p place) bool { return p.id == id }
	switch c.object {
	case "loadbalancer":
		return r.createPool(id, "tcp", "")
	case "listener":
		l := listeners[slices.IndexFunc(listeners, is)]
		return r.updateListener(l.balancer, l.protocol, l.id, "", true)
	case "pool":
		p := pools[slices.IndexFunc(pools, is)]
		return r.deletePool(p.balancer, p.protocol, p.id)
	default:
		m := members[slices.IndexFunc(members, is)]
		return r.deleteMember(m.balancer, m.protocol, m.pool, m.id)
	}
}
