package controller_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// model is what is in the database: networks and routers as the tests make them, and load balancers as
// the answered calls have. Its fields are exported for clone.
type model struct {
	Networks  map[string]*network // by switch name
	Routers   map[string][]string // the networks at each router
	Balancers map[string]*balancer
	// Foreign has names of load balancers that the third writer made, with the switches that they are on.
	Foreign map[string][]string
}

type network struct {
	ID       string
	Prefixes []netip.Prefix
	Subnets  []string // IDs, one for one with the prefixes
	// Outside: its router ports lead out of the cloud.
	Outside bool
	// Note is what the third writer wrote last.
	Note string
}

type balancer struct {
	ID, Name, Description string
	Tags                  []string
	Up                    bool
	Network, Port         string
	VIP                   netip.Addr
	Rows                  map[string]*row // by protocol; "" while there is neither a listener nor a pool
}

type row struct {
	// Counts has by network the VIP, and the members.
	Counts    map[string]int
	Listeners map[string]*listener
	Pools     map[string]*pool
	// Note is what the third writer wrote last.
	Note string
}

type listener struct {
	Name, Pool string
	Port       int
	Up         bool
}

type pool struct {
	Name    string
	Up      bool
	Members map[string]*member
}

type member struct {
	Name, Network, Subnet string
	Addr                  netip.AddrPort
	Weight                int
	Up                    bool
}

func (m *model) clone() *model {
	raw, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	out := new(model)
	if err := json.Unmarshal(raw, out); err != nil {
		panic(err)
	}
	return out
}

func newRow() *row {
	return &row{Counts: map[string]int{}, Listeners: map[string]*listener{}, Pools: map[string]*pool{}}
}

// row is that of a protocol. A load balancer without one gives its only row the protocol; else a
// sibling comes, on all networks of the first row.
func (b *balancer) row(protocol string) *row {
	if r := b.Rows[protocol]; r != nil {
		return r
	}
	if r := b.Rows[""]; r != nil {
		delete(b.Rows, "")
		b.Rows[protocol] = r
		return r
	}
	r := newRow()
	for name := range b.Rows[slices.Min(slices.Collect(maps.Keys(b.Rows)))].Counts {
		r.Counts[name] = 1
	}
	b.Rows[protocol] = r
	return r
}

// tidy takes rows away that have neither a listener nor a pool. The last one stays, without a protocol.
func (b *balancer) tidy() {
	for protocol, r := range b.Rows {
		if len(r.Listeners)+len(r.Pools) > 0 || protocol == "" {
			continue
		}
		delete(b.Rows, protocol)
		if len(b.Rows) == 0 {
			b.Rows[""] = r
		}
	}
}

func (r *row) add(network string, by int) {
	if r.Counts[network] += by; r.Counts[network] == 0 {
		delete(r.Counts, network)
	}
}

func (r *row) removeMember(pool, id string) {
	r.add(r.Pools[pool].Members[id].Network, -1)
	delete(r.Pools[pool].Members, id)
}

func (b *balancer) removePool(protocol, id string) {
	r := b.Rows[protocol]
	for m := range r.Pools[id].Members {
		r.removeMember(id, m)
	}
	delete(r.Pools, id)
	for _, l := range r.Listeners {
		if l.Pool == id {
			l.Pool = ""
		}
	}
	b.tidy()
}

// addresses of a row are its VIP and its members.
func (b *balancer) addresses(r *row) []netip.Addr {
	out := []netip.Addr{b.VIP}
	for _, p := range r.Pools {
		for _, m := range p.Members {
			out = append(out, m.Addr.Addr())
		}
	}
	return out
}

// where a row belongs: the switches that it counts, the routers that serve an address of it on one of
// them or on the VIP's, and the switches at these routers that have the VIP's family.
func (m *model) where(b *balancer, r *row) (switches, routers []string) {
	on, by := map[string]bool{}, map[string]bool{}
	for name := range r.Counts {
		on[name] = true
	}
	for router, networks := range m.Routers {
		serves := slices.ContainsFunc(networks, func(name string) bool {
			return !m.Networks[name].Outside && (r.Counts[name] > 0 || name == b.Network) && m.Networks[name].hasOne(b.addresses(r))
		})
		if !serves {
			continue
		}
		by[router] = true
		for _, name := range networks {
			if n := m.Networks[name]; !n.Outside && slices.ContainsFunc(n.Prefixes, func(p netip.Prefix) bool { return p.Addr().Is4() == b.VIP.Is4() }) {
				on[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(on)), slices.Sorted(maps.Keys(by))
}

func (n *network) hasOne(addresses []netip.Addr) bool {
	return slices.ContainsFunc(n.Prefixes, func(p netip.Prefix) bool { return slices.ContainsFunc(addresses, p.Contains) })
}

// lines are what the database has, a fact each.
func (m *model) lines() []string {
	var out lines
	for name, n := range m.Networks {
		out.add("switch %s note %s", name, n.Note)
	}
	for name, on := range m.Foreign {
		out.add("foreign load balancer %s on %s", name, strings.Join(slices.Sorted(slices.Values(on)), ","))
	}
	for router, networks := range m.Routers {
		for _, name := range networks {
			out.add("port to-%s-%s on %s", router, name, name)
		}
	}
	for _, b := range m.Balancers {
		prefix := m.Networks[b.Network].prefixOf(b.VIP)
		out.add("port %s on %s with %s/%d for ovn-lb-vip-%s", b.Port, b.Network, b.VIP, prefix.Bits(), b.ID)
		for protocol, r := range b.Rows {
			m.rowLines(&out, b, protocol, r)
		}
	}
	return out.sorted()
}

func (n *network) prefixOf(a netip.Addr) netip.Prefix {
	return n.Prefixes[slices.IndexFunc(n.Prefixes, func(p netip.Prefix) bool { return p.Contains(a) })]
}

func (m *model) rowLines(out *lines, b *balancer, protocol string, r *row) {
	of := rowTitle(b.ID, protocol)
	switches, routers := m.where(b, r)
	out.add("%s on switches %s", of, strings.Join(switches, ","))
	out.add("%s on routers %s", of, strings.Join(routers, ","))
	out.add("%s selection_fields ip_dst,ip_src,tp_dst,tp_src", of)
	key := func(k, v string) {
		if v != "" {
			out.add("%s key %s = %s", of, k, v)
		}
	}
	key("enabled", map[bool]string{true: "True", false: "False"}[b.Up])
	key("neutron:vip", b.VIP.String())
	key("neutron:vip_port_id", b.Port)
	key("ls_refs", counted(r.Counts))
	key("lr_ref", strings.Join(routers, ","))
	key("note", r.Note)
	out.add("%s has sluice:lb named %s", of, b.Name)
	status := map[string]string{}
	for id, l := range r.Listeners {
		pool := ""
		if l.Pool != "" {
			pool = "pool_" + l.Pool
		}
		key("listener_"+id+downMark(l.Up), fmt.Sprintf("%d:%s", l.Port, pool))
		out.add("%s has sluice:l:%s named %s", of, id, l.Name)
		if p := r.Pools[l.Pool]; b.Up && l.Up && p != nil && p.Up {
			if backends := p.backends(); backends != "" {
				out.add("%s balances %s to %s", of, netip.AddrPortFrom(b.VIP, uint16(l.Port)), backends)
			}
		}
	}
	weights := map[netip.AddrPort]int{}
	for _, p := range r.Pools {
		for _, m := range p.Members {
			if w, has := weights[m.Addr]; !has || m.Weight < w {
				weights[m.Addr] = m.Weight
			}
		}
	}
	var weighed []string
	for backend, weight := range weights {
		if weight != 1 {
			weighed = append(weighed, fmt.Sprintf("%s=%d", backend, weight))
		}
	}
	if len(weighed) > 0 {
		out.add("%s options sluice-weights = %s", of, inOrder(strings.Join(weighed, ",")))
	}
	for id, p := range r.Pools {
		var members []string
		for id, m := range p.Members {
			members = append(members, fmt.Sprintf("member_%s_%s:%d_%s", id, m.Addr.Addr(), m.Addr.Port(), m.Subnet))
			status[id] = map[bool]string{true: "NO_MONITOR", false: "OFFLINE"}[m.Up]
			out.add("%s has sluice:m:%s named %s", of, id, m.Name)
		}
		out.add("%s key pool_%s = %s", of, id+downMark(p.Up), strings.Join(slices.Sorted(slices.Values(members)), ","))
		out.add("%s has sluice:p:%s named %s", of, id, p.Name)
	}
	if len(status) > 0 {
		key("neutron:member_status", fmt.Sprint(status))
	}
}

func rowTitle(id, protocol string) string { return "load balancer " + id + " " + protocol }

// counted writes counts in the order of their names.
func counted(c map[string]int) string { return fmt.Sprint(c) }

func downMark(up bool) string {
	if up {
		return ""
	}
	return ":D"
}

func (p *pool) backends() string {
	var out []string
	for _, m := range p.Members {
		if m.Up {
			out = append(out, m.Addr.String())
		}
	}
	return strings.Join(slices.Sorted(slices.Values(out)), ",")
}

type lines []string

func (l *lines) add(format string, args ...any) { *l = append(*l, fmt.Sprintf(format, args...)) }

func (l lines) sorted() []string { return slices.Sorted(slices.Values(l)) }

// difference tells what one list has and the other has not, both sorted; empty if they are the same.
func difference(have, want []string) string {
	var b strings.Builder
	for _, line := range have {
		if _, found := slices.BinarySearch(want, line); !found {
			fmt.Fprintf(&b, "\n  should not be: %s", line)
		}
	}
	for _, line := range want {
		if _, found := slices.BinarySearch(have, line); !found {
			fmt.Fprintf(&b, "\n  is not there:  %s", line)
		}
	}
	if b.Len() == 0 && len(have) != len(want) {
		fmt.Fprintf(&b, "\n  a line is there twice, among %d and %d", len(have), len(want))
	}
	return b.String()
}

// shown are the lines of world.shown.
func (b *balancer) shown(out *lines) {
	out.add("%s %s %s %v %v %s", b.ID, b.Name, b.Description, b.Tags, b.Up, b.VIP)
	of := []map[string]string{{"id": b.ID}}
	for protocol, r := range b.Rows {
		protocol = strings.ToUpper(protocol)
		for id, l := range r.Listeners {
			out.add("%s %s %s %d %t %s %v", id, l.Name, protocol, l.Port, l.Up, l.Pool, of)
		}
		for id, p := range r.Pools {
			out.add("%s %s %s %t %v", id, p.Name, protocol, p.Up, of)
			for id, m := range p.Members {
				out.add("%s %s %s %d %d %t %s", id, m.Name, m.Addr.Addr(), m.Addr.Port(), m.Weight, m.Up, m.Subnet)
			}
		}
	}
}
