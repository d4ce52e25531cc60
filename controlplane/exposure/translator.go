package exposure

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// Tenants is what exposure asks of EVPN's translation.
type Tenants interface {
	// GatewayVRF is the VRF that a gateway port's frame key belongs to.
	GatewayVRF(intent.GatewayKey) (intent.VNI, bool)
	// Match is the longest match among the own routes of a VRF; packets from an
	// address that leads back to the port that they come from are the VRF's.
	Match(intent.VNI) func(netip.Addr) (intent.Route, bool)
	// HasBridge tells whether the tenants' tables have a bridge.
	HasBridge(intent.BridgeKey) bool
}

// Allocator hands out the number of the default VRF.
type Allocator interface {
	// Index is the VNI's number, the same one each time until it is released.
	Index(vni intent.VNI) (uint16, error)
	// Release frees the VNI's number.
	Release(vni intent.VNI)
}

// Translator keeps what is exposed. It is used by one goroutine at a time.
type Translator struct {
	cfg      Config
	alloc    Allocator
	readings *loadbalancer.Book
	tables   wanted.Set
	reports  []report
	// exposed are the objects by address; refused says why another is not.
	exposed map[netip.Addr]object
	refused map[netip.Addr]string
	index   uint16
	pending bool
	// stale: rows have changed that were not looked at. northbound: that database has
	// been in sync once.
	stale, northbound bool
	changes           uint64
}

// NewTranslator is one that exposes nothing yet.
func NewTranslator(cfg Config, alloc Allocator, readings *loadbalancer.Book) *Translator {
	return &Translator{cfg: cfg, alloc: alloc, readings: readings, tables: wanted.NewSet(), exposed: map[netip.Addr]object{}}
}

// Change is what a step is for.
type Change struct {
	// Rows: rows may differ that are read here, or the tenants' tables do.
	Rows bool
	// Complete: no row of Southbound that was asked for is still to come. Rows that
	// are not complete are not looked at. Northbound is the same of that database.
	Complete, Northbound bool
}

// Step computes all that is exposed, beside the tenants' tables as they are now, and
// returns what differs from the step before.
func (t *Translator) Step(rows *ovn.Rows, tenants Tenants, c Change) wanted.Difference {
	changed := c.Rows || t.stale || t.pending
	t.northbound = t.northbound || c.Northbound
	if t.stale = changed && !c.Complete; !t.cfg.Used() || !changed || !c.Complete {
		return wanted.Difference{}
	}
	t.readings.Follow(rows)
	b := &build{translation: collect(rows, t.cfg, t.readings), tenants: tenants, tables: wanted.NewSet(),
		exposed: map[netip.Addr]object{}, refused: map[netip.Addr]string{},
		matches: map[intent.VNI]func(netip.Addr) (intent.Route, bool){}, without: map[string]struct{}{}}
	t.pending = b.pending || rows.ExpectsNB() && !t.northbound
	for _, o := range b.objects {
		b.expose(o)
	}
	t.number(b)
	next := sortReports(b.reports)
	if !slices.Equal(next, t.reports) {
		t.changes++
	}
	diff := wanted.Diff(t.tables, b.tables)
	t.tables, t.reports, t.exposed, t.refused = b.tables, next, b.exposed, b.refused
	return diff
}

// number gives the default VRF its index while something is exposed.
func (t *Translator) number(b *build) {
	switch {
	case len(b.exposed) == 0 && t.index != 0:
		t.alloc.Release(intent.DefaultVRF)
		t.index = 0
	case len(b.exposed) == 0:
		return
	case t.index == 0:
		index, err := t.alloc.Index(intent.DefaultVRF)
		if err != nil {
			b.fail(kindVRF, intent.DefaultVRF.String(), reason.NoIndex, err)
			b.tables, b.exposed = wanted.NewSet(), map[netip.Addr]object{}
			return
		}
		t.index = index
	}
	if t.index != 0 {
		wanted.Put(b.tables, intent.VRFs, intent.VRF{VNI: intent.DefaultVRF, Index: t.index})
	}
}

// Tables is a copy of all tables.
func (t *Translator) Tables() wanted.Set {
	out := wanted.NewSet()
	out.Merge(t.tables)
	return out
}

// Pending tells whether Northbound rows are still to come: what is lacking for them
// is no reason to remove anything.
func (t *Translator) Pending() bool { return t.pending }

// Needed names an object for which the node has to forward; false when there is none.
func (t *Translator) Needed() (string, bool) {
	if len(t.exposed) == 0 {
		return "", false
	}
	var first netip.Addr
	for a := range t.exposed {
		if !first.IsValid() || a.Less(first) {
			first = a
		}
	}
	o := t.exposed[first]
	return fmt.Sprintf("%s of %s is exposed without EVPN", first, o.port), true
}

// Complaints is another number whenever Objects has changed.
func (t *Translator) Complaints() uint64 { return t.changes }

// Objects is what is wrong, or held back.
func (t *Translator) Objects() []status.Object { return t.reports }

// build makes the tables of the objects.
type build struct {
	*translation
	tenants Tenants
	tables  wanted.Set
	exposed map[netip.Addr]object
	refused map[netip.Addr]string
	// matches are those of the tenants' VRFs that have been asked for.
	matches map[intent.VNI]func(netip.Addr) (intent.Route, bool)
	// without are the networks, by family, that have been told to have no next hop.
	without map[string]struct{}
}

// accepts tells whether packets from an address behind a tenant's gateway port are
// its VRF's.
func (b *build) accepts(vni intent.VNI, key intent.GatewayKey, a netip.Addr) bool {
	match, there := b.matches[vni]
	if !there {
		match = b.tenants.Match(vni)
		b.matches[vni] = match
	}
	r, ok := match(a)
	return ok && r.Kind == intent.RouteLocal && r.Gateway == key
}

// expose makes the rows of one address, or says why there are none.
func (b *build) expose(o object) {
	refuse := func(state status.State, why, detail string) {
		b.say(state, o.kind, o.name, why, detail)
		b.refused[o.addr] = detail
	}
	key := o.key()
	vni, tenant := b.tenants.GatewayVRF(key)
	switch first, there := b.exposed[o.addr]; {
	case b.rows.IsHostAddress(o.addr):
		refuse(status.Error, reason.HostAddress, fmt.Sprintf("%s is an address of this node itself", o.addr))
		return
	case there:
		refuse(status.Error, reason.DuplicateAddress, fmt.Sprintf("%s is exposed already: %s %s", o.addr, first.kind, first.port))
		delete(b.refused, o.addr)
		return
	case tenant && b.accepts(vni, key, o.addr):
		refuse(status.Withheld, reason.InEVPN, fmt.Sprintf("%s is exposed in VRF %s, where packets from it go", o.addr, vni))
		return
	}
	b.exposed[o.addr] = o
	route := intent.NewHostKey(intent.DefaultVRF, o.addr)
	wanted.Put(b.tables, intent.Routes, intent.Route{Key: route, Kind: intent.RouteLocal, Gateway: key})
	wanted.Put(b.tables, intent.Announcements, intent.Announcement{Key: route, Gateway: key})
	b.steer(o, intent.SteerRouted, route.Prefix)
	if !b.tenants.HasBridge(key.Bridge) {
		wanted.Put(b.tables, intent.Bridges, intent.Bridge{Name: key.Bridge})
	}
	if !tenant {
		b.gateway(o)
	}
}

func (b *build) steer(o object, kind intent.SteeringKind, p netip.Prefix) {
	s := intent.Steering{Key: intent.SteeringKey{Gateway: o.key(), Kind: kind, Prefix: p}, Localnet: o.provider.Localnet.LogicalPort}
	if kind == intent.SteerRouted {
		s.NextHopMAC = b.cfg.NextHopMAC
	}
	wanted.Put(b.tables, intent.SteeringFlows, s)
}

// gateway makes the rows of the frame key, with the first object that has it.
func (b *build) gateway(o object) {
	key := o.key()
	if _, made := wanted.Rows(b.tables, intent.Gateways)[key]; !made {
		g := intent.Gateway{Key: key, VNI: intent.DefaultVRF, Kind: o.gateway, LogicalPort: o.port, ICMPSource4: b.cfg.ICMPSource4, ICMPSource6: b.cfg.ICMPSource6}
		for _, n := range o.own {
			switch a := n.Addr(); {
			case a.Is4() && !g.Addr4.IsValid():
				g.Addr4 = a
			case a.Is6() && !a.IsLinkLocalUnicast() && !g.Addr6.IsValid():
				g.Addr6 = a
			}
		}
		wanted.Put(b.tables, intent.Gateways, g)
		b.steer(o, intent.SteerToOVN, netip.Prefix{})
	}
	b.serve(o)
}
