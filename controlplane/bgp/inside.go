package bgp

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// insideTail is how many prefixes may stay unsorted when the index is used.
const insideTail = 256

// inside finds the ghosts of a VRF within a prefix, at a cost that does not grow
// with the ghosts elsewhere: a node's routes may all come back through other nodes
// at once. Ghosts that have gone stay in it until it is sorted.
type inside struct{ sorted, tail []netip.Prefix }

func (i *inside) add(p netip.Prefix, there map[netip.Prefix]*ghost) {
	if i.tail = append(i.tail, p); len(i.tail) > 2*len(there)+insideTail {
		i.sort(there)
	}
}

func (i *inside) sort(there map[netip.Prefix]*ghost) {
	all := slices.DeleteFunc(append(i.sorted, i.tail...), func(p netip.Prefix) bool { return there[p] == nil })
	slices.SortFunc(all, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	i.sorted, i.tail = slices.Compact(all), i.tail[:0]
}

// each calls fn with the prefixes that are longer than p and within it.
func (i *inside) each(p netip.Prefix, there map[netip.Prefix]*ghost, fn func(netip.Prefix)) {
	if len(i.tail) > insideTail {
		i.sort(there)
	}
	from, _ := slices.BinarySearchFunc(i.sorted, p.Addr(), func(q netip.Prefix, a netip.Addr) int { return q.Addr().Compare(a) })
	for _, q := range i.sorted[from:] {
		if !p.Contains(q.Addr()) {
			break
		}
		if q.Bits() > p.Bits() {
			fn(q)
		}
	}
	for _, q := range i.tail {
		if q.Bits() > p.Bits() && p.Contains(q.Addr()) {
			fn(q)
		}
	}
}

// unmask marks the ghosts that a new row covers.
func (r *rib) unmask(k intent.RouteKey) {
	index := r.ghosts.inside[k.VNI]
	if index == nil || k.Prefix.IsSingleIP() {
		return
	}
	rows := r.ghosts.rows[k.VNI]
	index.each(k.Prefix, rows, func(p netip.Prefix) {
		if g := rows[p]; g != nil {
			r.dirty[g.key] = struct{}{}
		}
	})
}
