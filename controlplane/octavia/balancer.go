package octavia

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia/network"
	"github.com/ovn-sluice/sluice/controlplane/octavia/rowform"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
)

// ErrNotFound: there is no object with the ID.
var ErrNotFound = errors.New("not found")

// Balancer is a load balancer in a transaction.
type Balancer struct {
	from northbound.Reader
	tx   *northbound.Tx // from, if that is one
	// Rows have one protocol each. The first one is there as long as the load balancer.
	Rows []*rowform.Row
	// before are the rows that are in the database, by UUID.
	before map[string]*nb.LoadBalancer
}

// Load reads a load balancer by its ID, in rows of older providers as well. It can be saved if that
// was from a transaction.
func Load(from northbound.Reader, id string) (*Balancer, error) {
	tx, _ := from.(*northbound.Tx)
	b := &Balancer{from: from, tx: tx, before: map[string]*nb.LoadBalancer{}}
	for _, row := range northbound.Find(from, northbound.LoadBalancerByName, id, rowform.Columns()...) {
		if !rowform.Is(row) {
			continue
		}
		r, err := rowform.Parse(row)
		if err != nil {
			return nil, err
		}
		complete(from, &r)
		b.before[row.UUID] = row
		b.Rows = append(b.Rows, &r)
	}
	if len(b.Rows) == 0 {
		return nil, fmt.Errorf("load balancer %s: %w", id, ErrNotFound)
	}
	slices.SortFunc(b.Rows, func(x, y *rowform.Row) int { return rowform.Compare(*x, *y) })
	return b, nil
}

// New is a load balancer that is not there yet, with a row that has this UUID. The VIP's network
// counts its VIPs; a provider network has none.
func New(tx *northbound.Tx, id, uuid string, n network.Network, vip rowform.VIP, additional ...rowform.VIP) *Balancer {
	r := &rowform.Row{UUID: uuid, Balancer: id, Enabled: true, VIP: vip, Additional: additional}
	if n.Physical == "" {
		r.Switches.Add(n.Switch, 1+len(additional))
	}
	return &Balancer{from: tx, tx: tx, Rows: []*rowform.Row{r}, before: map[string]*nb.LoadBalancer{}}
}

// Row is the row of a protocol. A load balancer without any has one that takes it; else a
// sibling comes, with the given UUID, on all switches of the first row.
func (b *Balancer) Row(protocol, uuid string) *rowform.Row {
	for _, r := range b.Rows {
		if r.Protocol == protocol || r.Protocol == "" && r.Empty() {
			r.Protocol = protocol
			return r
		}
	}
	first := b.Rows[0]
	r := &rowform.Row{
		UUID: uuid, Balancer: first.Balancer, Protocol: protocol, Enabled: first.Enabled,
		VIP: first.VIP, Additional: slices.Clone(first.Additional), Routers: slices.Clone(first.Routers),
	}
	for _, name := range first.Switches.Names() {
		r.Switches.Add(name, 1)
	}
	if own, has := first.Other[keyBalancer]; has {
		r.Other = map[string]string{keyBalancer: own}
	}
	b.Rows = append(b.Rows, r)
	return r
}

// AddMember adds a backend, that is in a network, to a pool of a row.
func (b *Balancer) AddMember(r *rowform.Row, pool int, m rowform.Member, n network.Network, state string) {
	r.Pools[pool].Members = append(r.Pools[pool].Members, m)
	r.Status.Set(m.ID, state)
	if n.Physical == "" {
		r.Switches.Add(n.Switch, 1)
	}
}

// RemoveMember removes a backend, that is in a network, from a pool of a row.
func (b *Balancer) RemoveMember(r *rowform.Row, pool int, id string, n network.Network) {
	p, removed := &r.Pools[pool], rowform.Member{}
	p.Members = slices.DeleteFunc(p.Members, func(m rowform.Member) bool {
		if m.ID == id {
			removed = m
		}
		return m.ID == id
	})
	r.Status.Set(id, "")
	dropAttributes(r, keyOwnMember+id)
	Weigh(r, removed.Addr)
	if n.Physical == "" {
		r.Switches.Add(n.Switch, -1)
	}
}

// Weigh gives a backend of a row the weight that its members have; the least, where they differ.
func Weigh(r *rowform.Row, backend netip.AddrPort) {
	least, known := 1, false
	for _, p := range r.Pools {
		for _, m := range p.Members {
			if m.Addr != backend {
				continue
			}
			weight := 1
			if w := MemberAttributes(r, m.ID).Weight; w != nil {
				weight = *w
			}
			if !known || weight < least {
				least, known = weight, true
			}
		}
	}
	r.Weigh(backend, least)
}

// Save writes the rows with the floating IPs of their VIPs, and associates each with the switches
// and routers that it belongs to.
func (b *Balancer) Save() {
	b.drop()
	for _, r := range b.Rows {
		before, after := b.reachBefore(r.UUID), reach(b.tx, *r)
		r.Routers = ordered(r.Routers, after.routers)
		r.VIP, r.Additional = floating(b.tx, r, after.routers)
		row := r.NBRow()
		if b.before[r.UUID] == nil {
			b.tx.Insert(row)
		} else {
			b.tx.Update(row, rowform.Columns()...)
		}
		b.associate(r.UUID, before, after)
	}
	for uuid, row := range b.before {
		if !slices.ContainsFunc(b.Rows, func(r *rowform.Row) bool { return r.UUID == uuid }) {
			b.remove(row)
		}
	}
}

// Settled tells whether Repair would change nothing: rows are associated as they have to be, have the
// floating IPs of their VIPs, and the VIP's port is there.
func (b *Balancer) Settled() bool {
	for _, r := range b.Rows {
		before, after := b.reachBefore(r.UUID), reach(b.from, *r)
		if !maps.Equal(before.routers, after.routers) || !maps.Equal(before.switches, after.switches) || !slices.Equal(r.Routers, ordered(r.Routers, after.routers)) {
			return false
		}
		if vip, additional := floating(b.from, r, after.routers); vip != r.VIP || !slices.Equal(additional, r.Additional) {
			return false
		}
	}
	return b.hasPort()
}

// hasPort tells whether the ports of the VIPs are there, or are none that the API made, or cannot be
// made again since their subnets are gone.
func (b *Balancer) hasPort() bool { return len(b.missing()) == 0 }

// port is one of a VIP that the API made.
type port struct {
	vip    rowform.VIP
	name   string
	subnet network.Subnet
}

// missing are the ports that have to be made again.
func (b *Balancer) missing() (out []port) {
	a, first := b.Attributes(), b.Rows[0]
	if !a.OwnPort {
		return nil
	}
	all := []port{{vip: first.VIP, name: PortName(first.Balancer), subnet: network.Subnet{ID: a.Subnet}}}
	for i, vip := range first.Additional {
		if i < len(a.AdditionalSubnets) {
			all = append(all, port{vip, AdditionalPortName(first.Balancer, i), network.Subnet{ID: a.AdditionalSubnets[i]}})
		}
	}
	for _, p := range all {
		if len(northbound.Find(b.from, northbound.SwitchPortByName, p.vip.Port)) > 0 {
			continue
		}
		if s, known := network.FindSubnet(b.from, p.subnet.ID); known {
			p.subnet = s
			out = append(out, p)
		}
	}
	return out
}

var (
	// balancersOfVIPPort finds rows by the port of their first VIP, which two that ask at once cannot both have.
	balancersOfVIPPort = northbound.Declare("external_ids", rowform.VIPPort, func(port string) ovsdb.Clause { return rowform.VIPPortIs(port) })
	// balancersOfPort finds rows by the ports of all their VIPs.
	balancersOfPort = northbound.Declare("external_ids", rowform.Ports, nil)
)

// OfPort is the load balancer that has a VIP at a port.
func OfPort(r northbound.Reader, port string) (id string, is bool) {
	for _, index := range []northbound.Index[*nb.LoadBalancer]{balancersOfVIPPort, balancersOfPort} {
		for _, row := range northbound.Find(r, index, port, "name") {
			return row.Name, true
		}
	}
	return "", false
}

// PortName is the name of the port of a load balancer's VIP.
func PortName(balancer string) string { return "ovn-lb-vip-" + balancer }

// AdditionalPortName is the name of the port of an additional VIP, which are counted from 0.
func AdditionalPortName(balancer string, i int) string {
	return fmt.Sprintf("ovn-lb-vip-additional-%d-%s", i+1, balancer)
}

// Repair makes what somebody has taken away again, and saves.
func (b *Balancer) Repair() {
	for _, p := range b.missing() {
		network.AddPort(b.tx, p.vip.Port, p.name, b.Attributes().Project, p.subnet, p.vip.Address)
	}
	b.Save()
}

// Delete removes all of it.
func (b *Balancer) Delete() {
	b.Rows = nil
	for _, row := range b.before {
		b.remove(row)
	}
}

// remove deletes a row. References to it are weak since OVN 22.03, and go with it.
func (b *Balancer) remove(row *nb.LoadBalancer) {
	b.associate(row.UUID, b.reachBefore(row.UUID), reached{})
	b.tx.Delete(row)
}

// drop takes rows away that have neither a listener nor a pool any more. The last one stays,
// without a protocol.
func (b *Balancer) drop() {
	b.Rows = slices.DeleteFunc(b.Rows, func(r *rowform.Row) bool {
		rest := slices.ContainsFunc(b.Rows, func(o *rowform.Row) bool { return o != r && (!o.Empty() || o.UUID < r.UUID) })
		return r.Empty() && rest
	})
	for _, r := range b.Rows {
		if r.Empty() {
			r.Protocol = ""
		}
	}
}

// ordered are the names in next, those of before first and in their order.
func ordered(before []string, next map[string]string) (out []string) {
	for _, name := range before {
		if _, ok := next[name]; ok {
			out = append(out, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(next)) {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
