package bgp

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"unique"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// Announcement is a Type-5 route that this node originates.
type Announcement struct {
	Key intent.RouteKey
}

// type5 is a route as it goes on the wire: comparable, so that a route is sent
// again exactly when it would look different.
type type5 struct {
	routerID  netip.Addr
	index     uint16
	prefix    netip.Prefix
	label     intent.VNI
	nextHop   netip.Addr
	routerMAC intent.MAC
	targets   intent.RouteTargets
	// localPref is the route's LOCAL_PREF; prepend is the AS number that makes its
	// AS_PATH longer, 0: nothing does.
	localPref, prepend uint32
	// shutdown: the node is to be left by all traffic that has another way.
	shutdown bool
}

// form is a route without its prefix. The routes of a VRF share one: a table of
// forms takes a quarter of the room that one of routes does.
type form struct{ shared unique.Handle[type5] }

func (t type5) form() form {
	t.prefix = netip.Prefix{}
	return form{unique.Make(t)}
}

func (f form) route(prefix netip.Prefix) type5 {
	t := f.shared.Value()
	t.prefix = prefix
	return t
}

// nlri is the part that identifies the route at a peer.
type nlri struct {
	index  uint16
	prefix netip.Prefix
}

func (t type5) nlri() nlri { return nlri{t.index, t.prefix} }

// outbox is the pure half of announcing: what is wanted, what was sent, and the
// steps between. It does not send.
type outbox struct {
	node     type5 // the fields that are the same in every route
	policies map[intent.VNI]intent.VRFPolicy
	wanted   map[intent.VNI]set[netip.Prefix]
	sent     map[intent.RouteKey]form
	// former are routes under earlier distinguishers that are not withdrawn yet.
	former map[intent.RouteKey][]type5
	// failed are the keys of which a step failed: the next sending takes them up.
	failed set[intent.RouteKey]
	// highest is the highest LOCAL_PREF that others have for a key; false: they do not
	// announce it. nil: nobody else announces anything.
	highest func(intent.RouteKey) (uint32, bool)
	// yielding are routes of gateway ports that have gone, rebid those whose
	// LOCAL_PREF is found anew.
	yielding, rebid set[intent.RouteKey]
	asn             uint32
	// prepends: a route that yields has a longer AS_PATH.
	prepends   bool
	reasserted bool
	// holder is the VRF whose route occupies an NLRI at the peers.
	holder map[nlri]intent.VNI
}

func newOutbox(c Config) *outbox {
	return &outbox{
		node:     type5{routerID: c.RouterID, nextHop: c.vtep(), routerMAC: c.RouterMAC},
		policies: map[intent.VNI]intent.VRFPolicy{},
		wanted:   map[intent.VNI]set[netip.Prefix]{},
		sent:     map[intent.RouteKey]form{},
		former:   map[intent.RouteKey][]type5{},
		failed:   set[intent.RouteKey]{},
		yielding: set[intent.RouteKey]{}, rebid: set[intent.RouteKey]{}, asn: c.ASN, prepends: c.onlyExternal(),
		holder: map[nlri]intent.VNI{},
	}
}

func (o *outbox) want(a Announcement) error {
	if err := checkKey(a.Key); err != nil {
		o.unwant(a.Key)
		return err
	}
	add(o.wanted, a.Key.VNI, a.Key.Prefix)
	if _, ok := o.policies[a.Key.VNI]; !ok {
		return fmt.Errorf("announce %s: %w for the route targets of its VRF", a.Key, reconcile.ErrNotReady)
	}
	return nil
}

func (o *outbox) unwant(k intent.RouteKey) {
	drop(o.wanted, k.VNI, k.Prefix)
	delete(o.yielding, k)
}

func checkKey(k intent.RouteKey) error {
	if k.VNI == 0 || k.VNI > intent.MaxVNI {
		return fmt.Errorf("announce %s: a VNI is 1..%d", k, intent.MaxVNI)
	}
	if !k.Prefix.IsValid() || k != intent.NewRouteKey(k.VNI, k.Prefix) {
		return fmt.Errorf("announce %s: the prefix is not canonical", k)
	}
	return nil
}

// route is what should be on the wire for a key, if anything.
func (o *outbox) route(k intent.RouteKey) (type5, bool) {
	_, ok := o.wanted[k.VNI][k.Prefix]
	policy, known := o.policies[k.VNI]
	if !ok || !known {
		return type5{}, false
	}
	t := o.node
	t.index, t.prefix, t.label = policy.Index, k.Prefix, k.VNI
	t.targets = policy.Export
	t.localPref = o.prefer(k)
	if _, yields := o.yielding[k]; yields && o.prepends {
		t.prepend = o.asn
	}
	return t, true
}

// last is what was sent last for a key, if it is still announced.
func (o *outbox) last(k intent.RouteKey) (type5, bool) {
	f, ok := o.sent[k]
	if !ok {
		return type5{}, false
	}
	return f.route(k.Prefix), true
}

// step is one change to hand to the BGP server.
type step struct {
	key      intent.RouteKey
	withdraw bool
	route    type5
}

// plan orders the changes that the keys need: withdrawals, then additions, then
// the old forms of routes whose distinguisher changed (make before break).
func (o *outbox) plan(keys []intent.RouteKey) []step {
	var first, adds, last []step
	for _, k := range keys {
		old, was := o.last(k)
		next, is := o.route(k)
		if is && (!was || old != next) {
			adds = append(adds, step{key: k, route: next})
		}
		gone := o.former[k]
		if was {
			gone = append(slices.Clip(gone), old)
		}
		for _, t := range gone {
			switch {
			case !is:
				first = append(first, step{key: k, withdraw: true, route: t})
			case t.nlri() != next.nlri():
				last = append(last, step{key: k, withdraw: true, route: t})
			}
		}
	}
	return append(append(first, adds...), last...)
}

// withFailed adds the keys of which a step failed before.
func (o *outbox) withFailed(keys []intent.RouteKey) []intent.RouteKey {
	if len(o.failed) == 0 {
		return keys
	}
	all := maps.Clone(o.failed)
	for _, k := range keys {
		all[k] = struct{}{}
	}
	return slices.Collect(maps.Keys(all))
}

// needed tells whether a withdrawal is still right: another VRF may have taken
// over the NLRI (two that exchanged their index).
func (o *outbox) needed(s step) bool {
	return !s.withdraw || o.holder[s.route.nlri()] == s.key.VNI
}

// done notes that the BGP server took the step.
func (o *outbox) done(s step) {
	id := s.route.nlri()
	if !s.withdraw {
		if old, ok := o.last(s.key); ok && old.nlri() != id {
			o.former[s.key] = append(o.former[s.key], old)
		}
		o.forget(s.key, id)
		o.sent[s.key] = s.route.form()
		o.holder[id] = s.key.VNI
		return
	}
	if o.holder[id] == s.key.VNI {
		delete(o.holder, id)
	}
	o.forget(s.key, id)
	if now, ok := o.last(s.key); ok && now.nlri() == id {
		delete(o.sent, s.key)
	}
}

func (o *outbox) forget(k intent.RouteKey, id nlri) {
	if len(o.former[k]) == 0 {
		return
	}
	left := slices.DeleteFunc(o.former[k], func(t type5) bool { return t.nlri() == id })
	if o.former[k] = left; len(left) == 0 {
		delete(o.former, k)
	}
}

// setPolicies replaces the policies and returns the keys to look at again.
func (o *outbox) setPolicies(policies map[intent.VNI]intent.VRFPolicy) []intent.RouteKey {
	var keys []intent.RouteKey
	touch := func(vni intent.VNI) {
		for p := range o.wanted[vni] {
			keys = append(keys, intent.RouteKey{VNI: vni, Prefix: p})
		}
	}
	for vni, old := range o.policies {
		if next, ok := policies[vni]; !ok {
			touch(vni)
		} else if next.Index != old.Index || next.Export != old.Export {
			touch(vni)
		}
	}
	for vni := range policies {
		if _, ok := o.policies[vni]; !ok {
			touch(vni)
		}
	}
	o.policies = policies
	return keys
}
