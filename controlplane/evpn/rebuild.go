package evpn

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// rebuild makes the VRFs of the given VNIs again. Bridges are not its business.
func (t *Translator) rebuild(vnis map[intent.VNI]struct{}) wanted.Difference {
	step, next := newStep(), wanted.NewSet()
	for vni := range vnis {
		t.touch(step, vni)
	}
	// A place that became free goes to the lowest VNI that waits.
	for vni := range t.waiting {
		if t.admitted < t.cfg.maxVRFs() {
			t.touch(step, vni)
		}
	}
	t.makeRoom(step)
	for _, vni := range step.order() {
		s := &vrfState{errors: step.refused[vni]}
		if members := step.members[vni]; len(members) > 0 {
			t.admit(vni, s, members)
		}
		if had := t.vrfs[vni]; had == nil && len(s.errors) > 0 || had != nil && !sameErrors(had.errors, s.errors) {
			t.complaints++
		}
		if s.index == 0 && len(s.errors) == 0 {
			delete(t.vrfs, vni)
			continue
		}
		t.vrfs[vni] = s
		s.tables.AddTo(next)
		t.countAnswering(s.answering, +1, step.segments)
	}
	t.denials(step.segments, wanted.Edit(step.old, intent.ServedNextHops), wanted.Edit(next, intent.ServedNextHops))
	return wanted.Diff(step.old, next)
}

// step is what a rebuild goes through: the VRFs that it makes again, with what
// they were made of before and are made of now.
type step struct {
	old      wanted.Set
	members  map[intent.VNI][]member
	refused  map[intent.VNI][]ObjectError
	segments map[intent.GatewayKey]struct{}
}

func newStep() *step {
	return &step{old: wanted.NewSet(), members: map[intent.VNI][]member{}, refused: map[intent.VNI][]ObjectError{}, segments: map[intent.GatewayKey]struct{}{}}
}

// order is VRFs with a gateway port here before those with none, by VNI.
func (s *step) order() []intent.VNI {
	return slices.SortedFunc(maps.Keys(s.members), func(a, b intent.VNI) int {
		return cmp.Or(boolean(standbyOnly(s.members[a]))-boolean(standbyOnly(s.members[b])), cmp.Compare(a, b))
	})
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// touch makes a VRF one of the step.
func (t *Translator) touch(step *step, vni intent.VNI) {
	if _, done := step.members[vni]; done {
		return
	}
	if s := t.vrfs[vni]; s != nil {
		s.tables.AddTo(step.old)
		t.countAnswering(s.answering, -1, step.segments)
	}
	if step.members[vni], step.refused[vni] = t.members(vni); len(step.members[vni]) == 0 {
		t.evict(vni)
	}
}

// members lists the gateway ports that make a VRF, and refuses those whose frame
// key another gateway port owns.
func (t *Translator) members(vni intent.VNI) (out []member, refused []ObjectError) {
	routers := make([]string, 0, len(t.byVNI[vni]))
	for id := range t.byVNI[vni] {
		routers = append(routers, string(id))
	}
	slices.Sort(routers)
	for _, name := range t.alloc.Seniority(vni, routers) {
		id := ovn.UUID(name)
		for k, g := range t.results[id].Gateways {
			if g.Gateway.VNI != vni {
				continue
			}
			if owner, at := t.owner(g.Gateway.Key); owner != id || at != k {
				if g.Standby {
					continue
				}
				refused = append(refused, ObjectError{Kind: kindGateway, Name: g.Gateway.LogicalPort, Reason: reason.DuplicateGateway,
					Err: fmt.Errorf("%s is the gateway port %s already", g.Gateway.Key, t.results[owner].Gateways[at].Gateway.LogicalPort)})
				continue
			}
			out = append(out, member{router: id, GatewayResult: g})
		}
	}
	slices.SortStableFunc(out, func(a, b member) int { return boolean(a.Standby) - boolean(b.Standby) })
	return out, refused
}

// owner is the router that a frame key belongs to, and the place in its result.
func (t *Translator) owner(key intent.GatewayKey) (ovn.UUID, int) {
	var best ovn.UUID
	at, away := -1, false
	for id := range t.byKey[key] {
		gateways := t.results[id].Gateways
		k := slices.IndexFunc(gateways, func(g GatewayResult) bool { return g.Gateway.Key == key })
		if gateways[k].Standby && at >= 0 && !away || at >= 0 && gateways[k].Standby == away && best < id {
			continue
		}
		best, at, away = id, k, gateways[k].Standby
	}
	return best, at
}

// admit gives the VRF its place and builds it, or says why it has none.
func (t *Translator) admit(vni intent.VNI, s *vrfState, members []member) {
	had := t.vrfs[vni] != nil && t.vrfs[vni].index != 0
	refuse := func(reason string, err error) {
		t.waiting[vni] = struct{}{}
		s.errors = append(s.errors, ObjectError{Kind: kindVRF, Name: vni.String(), Reason: reason, Err: err})
	}
	if !had && t.admitted >= t.cfg.maxVRFs() {
		refuse(reason.VRFLimit, fmt.Errorf("this node has %d VRFs, the most that evpn.maxVRFs allows", t.admitted))
		return
	}
	index, err := t.alloc.Index(vni)
	if err != nil {
		if had {
			t.admitted--
		}
		refuse(reason.NoIndex, err)
		return
	}
	if !had {
		t.admitted++
	}
	delete(t.waiting, vni)
	s.index, s.standby = index, standbyOnly(members)
	b := buildVRF(vni, index, t.cfg, t.facts, members)
	s.tables, s.answering, s.balanced, s.annotated, s.choice = b.tables.Pack(), b.answering, b.balanced, b.annotated, b.choice
	s.errors = append(s.errors, b.errors...)
}

// evict gives a VRF's place back.
func (t *Translator) evict(vni intent.VNI) {
	delete(t.waiting, vni)
	if s := t.vrfs[vni]; s != nil && s.index != 0 {
		t.admitted--
		t.alloc.Release(vni)
		s.index = 0
	}
}
