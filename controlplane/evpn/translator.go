package evpn

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// Allocator hands out the small stable number of a VRF, and knows who came first to it.
type Allocator interface {
	// Index is the VNI's number, the same one each time until it is released.
	Index(vni intent.VNI) (uint16, error)
	// Release frees the VNI's number.
	Release(vni intent.VNI)
	// Seniority puts routers that name a VNI in the order in which they came to it. It
	// is kept like the number.
	Seniority(vni intent.VNI, routers []string) []string
	// Leave is told that a router names a VNI no more.
	Leave(vni intent.VNI, router string)
}

// Translator keeps the translation of every router and the VRFs made of them.
// It is not safe for use by two goroutines at once.
type Translator struct {
	cfg   Config
	alloc Allocator
	// readings are what load balancers say, for other features of the node, too.
	readings *loadbalancer.Book
	results  map[ovn.UUID]Result
	// byVNI and byKey are the routers that name a VNI or a frame key.
	byVNI map[intent.VNI]map[ovn.UUID]struct{}
	byKey map[intent.GatewayKey]map[ovn.UUID]struct{}
	vrfs  map[intent.VNI]*vrfState
	// admitted counts the VRFs that have a place; waiting are those without.
	admitted int
	waiting  map[intent.VNI]struct{}
	// unnamed counts the results that are Unnamed.
	unnamed int
	// unfinished are routers that appeared while rows of theirs were to come.
	unfinished map[ovn.UUID]struct{}
	// bridges counts the routers that use a provider bridge.
	bridges  map[intent.BridgeKey]int
	segments map[intent.GatewayKey]*segment
	known    *knownAddresses
	facts    PathFacts
	// complaints counts the changes of errors and notes.
	complaints uint64
	steps      uint64
}

// vrfState is a VNI that some gateway port names.
type vrfState struct {
	// index is 0 while the VRF has no place.
	index uint16
	// standby: none of its gateway ports is here.
	standby bool
	tables  wanted.Packed
	// annotated is what its gateway ports say of its path.
	annotated PathMode
	choice    Choice
	balanced  []loadbalancer.Balanced
	// answering is what the VRF's gateway ports answer beside known ports.
	answering []answering
	errors    []ObjectError
}

// NewTranslator is a translator that knows no router yet.
func NewTranslator(cfg Config, alloc Allocator, readings *loadbalancer.Book) *Translator {
	return &Translator{
		cfg: cfg, alloc: alloc, readings: readings,
		results: map[ovn.UUID]Result{},
		byVNI:   map[intent.VNI]map[ovn.UUID]struct{}{},
		byKey:   map[intent.GatewayKey]map[ovn.UUID]struct{}{},
		vrfs:    map[intent.VNI]*vrfState{},
		waiting: map[intent.VNI]struct{}{}, unfinished: map[ovn.UUID]struct{}{},
		bridges: map[intent.BridgeKey]int{}, segments: map[intent.GatewayKey]*segment{},
	}
}

// Step translates the touched routers again and returns what differs from the
// step before. Routers that are gone are touched too, or All is set.
//
// complete tells that no row of the Southbound database that was asked for is
// still to come. Until then a router that appears is left for later: half of its
// rows would have Sluice answer ARP and ND for addresses of ports that it does
// not know yet, and OVN keeps such an answer (SB MAC_Binding).
//
// A router that was translated keeps its last result while its NAT rows are
// incomplete, as for a moment after each change of them.
func (t *Translator) Step(rows *ovn.Rows, d ovn.Dirty, complete bool) wanted.Difference {
	t.steps++
	routers := make([]ovn.UUID, 0, len(d.Routers))
	for id := range d.Routers {
		routers = append(routers, id)
	}
	if d.All {
		routers = append(routers, rows.Routers()...)
		for id := range t.results {
			routers = append(routers, id)
		}
	}
	if complete {
		routers = slices.AppendSeq(routers, maps.Keys(t.unfinished))
		clear(t.unfinished)
	}
	slices.Sort(routers)
	routers = slices.Compact(routers)
	vnis, bridges := map[intent.VNI]struct{}{}, map[intent.BridgeKey]int{}
	t.follow(rows)
	t.readings.Follow(rows)
	for _, id := range routers {
		old, ok := t.results[id]
		if !ok && !complete {
			t.unfinished[id] = struct{}{}
			continue
		}
		next := translate(rows, id, t.cfg, t.known, t.readings)
		if next.Pending && len(old.Gateways) > 0 && !old.Pending {
			continue
		}
		t.countBridges(old.Bridges, -1, bridges)
		t.countBridges(next.Bridges, +1, bridges)
		t.replace(id, next, vnis)
	}
	return wanted.With(t.rebuild(vnis), intent.Bridges, t.bridgeDelta(bridges))
}

// Pending tells whether a router of the VRF waits for its rows of the Northbound
// database, or one does that may be: what it lacks for them is no reason to remove
// anything.
func (t *Translator) Pending(vni intent.VNI) bool {
	for id := range t.byVNI[vni] {
		if r := t.results[id]; r.Pending || r.Unseen {
			return true
		}
	}
	return t.unnamed > 0 && len(t.byVNI[vni]) == 0
}

// replace puts a router's result in the place of its last one and adds the VNIs
// that this concerns: its own, and those of whoever shares a frame key with it.
func (t *Translator) replace(id ovn.UUID, next Result, vnis map[intent.VNI]struct{}) {
	old := t.results[id]
	if !sameErrors(old.Errors, next.Errors) || !slices.Equal(old.Notes, next.Notes) || old.Unbalanced != next.Unbalanced {
		t.complaints++
	}
	t.unnamed += boolean(next.Unnamed) - boolean(old.Unnamed)
	t.concerned(old, vnis)
	for _, g := range old.Gateways {
		if !next.names(g.Gateway.VNI) {
			t.alloc.Leave(g.Gateway.VNI, string(id))
		}
	}
	for _, g := range old.Gateways {
		drop(t.byVNI, g.Gateway.VNI, id)
		drop(t.byKey, g.Gateway.Key, id)
	}
	delete(t.results, id)
	if next.empty() {
		return
	}
	t.results[id] = next
	for _, g := range next.Gateways {
		insert(t.byVNI, g.Gateway.VNI, id)
		insert(t.byKey, g.Gateway.Key, id)
	}
	t.concerned(next, vnis)
}

// Names tells whether a router has a gateway port here, or one that may come, with the VNI.
func (t *Translator) Names(vni intent.VNI, router string) bool {
	return t.results[ovn.UUID(router)].names(vni)
}

func (t *Translator) concerned(r Result, vnis map[intent.VNI]struct{}) {
	for _, g := range r.Gateways {
		vnis[g.Gateway.VNI] = struct{}{}
		for other := range t.byKey[g.Gateway.Key] {
			for _, o := range t.results[other].Gateways {
				if o.Gateway.Key == g.Gateway.Key {
					vnis[o.Gateway.VNI] = struct{}{}
				}
			}
		}
	}
}

func insert[K comparable](m map[K]map[ovn.UUID]struct{}, k K, id ovn.UUID) {
	if m[k] == nil {
		m[k] = map[ovn.UUID]struct{}{}
	}
	m[k][id] = struct{}{}
}

func drop[K comparable](m map[K]map[ovn.UUID]struct{}, k K, id ovn.UUID) {
	delete(m[k], id)
	if len(m[k]) == 0 {
		delete(m, k)
	}
}

// Tables is a copy of all tables. Routes holds local and block rows only, of both paths: whoever
// joins them with those of BGP puts them into Routes or KernelRoutes, by VRF.Path.
func (t *Translator) Tables() wanted.Set {
	out := wanted.NewSet()
	for _, s := range t.vrfs {
		s.tables.AddTo(out)
	}
	for b := range t.bridges {
		wanted.Put(out, intent.Bridges, intent.Bridge{Name: b})
	}
	for _, s := range t.segments {
		maps.Copy(wanted.Edit(out, intent.ServedNextHops), s.rows)
	}
	return out
}

// Errors lists what is wrong, sorted.
func (t *Translator) Errors() []ObjectError {
	var out []ObjectError
	for _, r := range t.results {
		out = append(out, r.Errors...)
	}
	for _, s := range t.vrfs {
		out = append(out, s.errors...)
	}
	sortErrors(out)
	return out
}

// Notes lists what is worth knowing and no fault, sorted.
func (t *Translator) Notes() []Note {
	var out []Note
	unbalanced := false
	for _, r := range t.results {
		out = append(out, r.Notes...)
		unbalanced = unbalanced || r.Unbalanced
	}
	if unbalanced { // of all routers once
		out = append(out, Note{Kind: kindNode, Name: "load-balancers", Reason: reason.BalancersUnknown, Detail: "those of routers are in the Northbound database, which this node does not follow"})
	}
	sortNotes(out)
	return out
}

func sortedVNIs(set map[intent.VNI]struct{}) []intent.VNI {
	out := make([]intent.VNI, 0, len(set))
	for v := range set {
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b intent.VNI) int { return cmp.Compare(a, b) })
	return out
}
