package tapbalancing

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// outcome is what is decided on a switch with VMs here. It does not change.
type outcome struct {
	scope     intent.VNI
	vips      map[intent.VIPKey]intent.VIP
	neighbors map[intent.NeighborKey]intent.Neighbor
	balanced  []loadbalancer.Balanced
	// vms are those to be listed, claims the taps of all.
	vms     []VM
	claims  []claim
	objects []status.Object
	judged  judged
}

// claim is a VM's on a tap.
type claim struct {
	at   ovn.UUID // its switch
	port string
	row  intent.TapClient
}

func (c claim) compare(o claim) int {
	return cmp.Or(cmp.Compare(c.at, o.at), cmp.Compare(c.port, o.port))
}

// scope is the switches with one tunnel key: more than one only for a moment, when rows of
// one that goes and one that comes are there.
type scope struct {
	at        map[ovn.UUID]struct{}
	vips      map[intent.VIPKey]intent.VIP
	neighbors map[intent.NeighborKey]intent.Neighbor
}

// step is what switches change: the scopes that they are in, and rows of taps as they were;
// the zero value was none.
type step struct {
	scopes  map[intent.VNI]struct{}
	clients map[intent.TapClientKey]intent.TapClient
}

func newStep() *step {
	return &step{scopes: map[intent.VNI]struct{}{}, clients: map[intent.TapClientKey]intent.TapClient{}}
}

// replace puts the outcome of a switch in the place of its last one. nil: it has no VMs
// here, or is not there.
func (t *Translator) replace(s *step, id ovn.UUID, next *outcome) {
	t.lists = lists{}
	var before, after []status.Object
	if old := t.outcomes[id]; old != nil {
		before = old.objects
		s.scopes[old.scope] = struct{}{}
		delete(t.scopes[old.scope].at, id)
		for _, c := range old.claims {
			t.claim(s, c, false)
		}
		delete(t.outcomes, id)
	}
	if next != nil {
		after = next.objects
		t.outcomes[id] = next
		s.scopes[next.scope] = struct{}{}
		if t.scopes[next.scope] == nil {
			t.scopes[next.scope] = &scope{at: map[ovn.UUID]struct{}{}}
		}
		t.scopes[next.scope].at[id] = struct{}{}
		for _, c := range next.claims {
			t.claim(s, c, true)
		}
	}
	if !slices.Equal(before, after) {
		t.changes++
	}
}

// claim adds a claim, or takes it away. Of several on one tap the first by switch and port has
// it, whichever came first; each of the others is an error, if it is on a switch with VIPs.
func (t *Translator) claim(s *step, c claim, add bool) {
	key := c.row.Key
	list := t.claims[key]
	if _, seen := s.clients[key]; !seen {
		s.clients[key] = intent.TapClient{}
		if len(list) > 0 {
			s.clients[key] = list[0].row
		}
	}
	at, found := slices.BinarySearchFunc(list, c, claim.compare)
	switch {
	case add:
		list = slices.Insert(list, at, c)
	case found:
		list = slices.Delete(list, at, at+1)
	}
	if len(list) > 1 || len(list) == 1 && !add {
		t.changes++
	}
	if t.claims[key] = list; len(list) == 0 {
		delete(t.claims, key)
	}
}

// merge makes the tables of the scopes and taps that a step has changed, and tells what
// differs.
func (t *Translator) merge(s *step) wanted.Difference {
	var vips wanted.Delta[intent.VIPKey, intent.VIP]
	var neighbors wanted.Delta[intent.NeighborKey, intent.Neighbor]
	for vni := range s.scopes {
		old := t.scopes[vni]
		next := t.scope(old.at)
		join(&vips, wanted.NewDelta(old.vips, next.vips))
		join(&neighbors, wanted.NewDelta(old.neighbors, next.neighbors))
		if t.scopes[vni] = next; len(next.at) == 0 {
			delete(t.scopes, vni)
		}
	}
	before, after := map[intent.TapClientKey]intent.TapClient{}, map[intent.TapClientKey]intent.TapClient{}
	for key, row := range s.clients {
		if row != (intent.TapClient{}) {
			before[key] = row
		}
		if list := t.claims[key]; len(list) > 0 {
			after[key] = list[0].row
		}
	}
	d := wanted.With(wanted.Difference{}, intent.ClientVIPs, vips)
	d = wanted.With(d, intent.ClientNeighbors, neighbors)
	return wanted.With(d, intent.TapClients, wanted.NewDelta(before, after))
}

// scope is that of switches. A row that several have is the first one's.
func (t *Translator) scope(at map[ovn.UUID]struct{}) *scope {
	out := &scope{at: at}
	ids := slices.Sorted(maps.Keys(at))
	if len(ids) == 1 {
		o := t.outcomes[ids[0]]
		out.vips, out.neighbors = o.vips, o.neighbors
		return out
	}
	out.vips, out.neighbors = map[intent.VIPKey]intent.VIP{}, map[intent.NeighborKey]intent.Neighbor{}
	for _, id := range slices.Backward(ids) {
		maps.Copy(out.vips, t.outcomes[id].vips)
		maps.Copy(out.neighbors, t.outcomes[id].neighbors)
	}
	return out
}

// join adds a difference of other rows.
func join[K, V comparable](d *wanted.Delta[K, V], o wanted.Delta[K, V]) {
	if d.Set == nil {
		d.Set = o.Set
	} else {
		maps.Copy(d.Set, o.Set)
	}
	d.Delete = append(d.Delete, o.Delete...)
}
