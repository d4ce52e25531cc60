package tables

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// endpoint is where the programs send what they balance in a VRF, and where answers are from.
type endpoint struct {
	vni      intent.VNI
	protocol intent.Protocol
	addr     netip.Addr
	port     uint16
}

func (e endpoint) host() intent.RouteKey { return intent.NewHostKey(e.vni, e.addr) }

// ways are what is known of the rows BackendRoutes and SteerAnswer beside the tables: the
// ways to and from backends whose networks are not exposed. Guarded by the pipeline.
type ways struct {
	// at are the wanted VIPs of an address, and vips counts those of a VRF.
	at   map[intent.RouteKey][]intent.VIPKey
	vips map[intent.VNI]int
	// to and from are until when ways stay that no VIP leads to any more.
	to   linger[intent.RouteKey]
	from linger[endpoint]
}

func newWays(room int) *ways {
	return &ways{at: map[intent.RouteKey][]intent.VIPKey{}, vips: map[intent.VNI]int{}, to: newLinger[intent.RouteKey](room), from: newLinger[endpoint](room)}
}

func (w *ways) add(k intent.VIPKey) {
	address := intent.NewHostKey(k.VNI, k.Addr)
	w.at[address] = append(w.at[address], k)
	w.vips[k.VNI]++
}

func (w *ways) remove(k intent.VIPKey) {
	address := intent.NewHostKey(k.VNI, k.Addr)
	i := slices.Index(w.at[address], k)
	if i < 0 {
		return
	}
	if w.at[address] = slices.Delete(w.at[address], i, i+1); len(w.at[address]) == 0 {
		delete(w.at, address)
	}
	if w.vips[k.VNI]--; w.vips[k.VNI] == 0 {
		delete(w.vips, k.VNI)
	}
}

// isEarly tells which flows come before the VIPs and go after them: those that bring answers.
func isEarly(k intent.SteeringKey) bool { return k.Kind == intent.SteerAnswer }

// way tells what lacks for new flows of a VIP to a backend, and for their answers; nil: nothing.
func (g gates) way(k intent.VIPKey, b intent.Backend) error {
	if b.Weight == 0 {
		return nil // it gets none
	}
	e := endpoint{k.VNI, k.Protocol, b.Addr, b.Port}
	to, hidden := Of(g, intent.BackendRoutes).LookupLocked(e.host())
	if !hidden {
		return nil // its network is exposed, or the gateway port is elsewhere
	}
	if !inPlace(g, Of(g, intent.BackendRoutes), e.host()) {
		return fmt.Errorf("%w for the path to backend %s", reconcile.ErrNotReady, b)
	}
	from := intent.SteeringKey{Gateway: to.Gateway, Kind: intent.SteerAnswer, Prefix: e.host().Prefix, Protocol: k.Protocol, Port: b.Port}
	if Of(g, intent.SteeringFlows).WantedLocked(from) && !g.flow(from) {
		return fmt.Errorf("%w for flow %s", reconcile.ErrNotReady, from)
	}
	return nil
}

// leave takes the backends that a VIP has no more, as far as they have ways of their own:
// flows to them go on, unless the VIP says that they end. It tells whether there are any.
func (t *Tables) leave(old, v intent.VIP) (left bool) {
	rest := v.Backends.All()
	for _, b := range old.Backends.All() {
		for len(rest) > 0 && cmp.Or(rest[0].Addr.Compare(b.Addr), cmp.Compare(rest[0].Port, b.Port)) < 0 {
			rest = rest[1:]
		}
		if len(rest) > 0 && rest[0].Addr == b.Addr && rest[0].Port == b.Port {
			continue
		}
		e := endpoint{v.Key.VNI, v.Key.Protocol, b.Addr, b.Port}
		if Of(t, intent.BackendRoutes).MayBeLocked(e.host(), func(intent.BackendRoute) bool { return true }) {
			t.ways.to.leave(e.host(), v.Flush)
			t.ways.from.leave(e, v.Flush)
			left = true
		}
	}
	return left
}

// FlowEnd is a backend as flows to VIPs have it.
type FlowEnd struct {
	VNI      intent.VNI
	Protocol intent.Protocol
	Backend  netip.AddrPort
}

// PathsExpire tells whether a path that is kept for sessions expires within some time. It is called
// inside a view of the pipeline.
func (t *Tables) PathsExpire(within time.Duration) bool {
	for e := range t.ways.from.until {
		if t.ways.from.ends(e, within) {
			return true
		}
	}
	for k := range t.ways.to.until {
		if t.ways.to.ends(k, within) {
			return true
		}
	}
	return false
}

// FlowsUsed tells how long ago known flows had their last packets: ways stay until these are
// idle, however old they are. Call it inside an update of the pipeline.
func (t *Tables) FlowsUsed(ago map[FlowEnd]time.Duration) {
	for f, since := range ago {
		e := endpoint{f.VNI, f.Protocol, f.Backend.Addr(), f.Backend.Port()}
		t.ways.to.used(e.host(), since)
		t.ways.from.used(e, since)
		e.port = 0 // of a VIP of all ports
		t.ways.from.used(e, since)
	}
}

// lingerTo has the way to a backend stay for the flows that are known.
func (t *Tables) lingerTo(k intent.RouteKey, r intent.BackendRoute) bool {
	return r.Key == k && t.balances(k.VNI, r.Gateway) &&
		(t.ways.to.keeps(k) || t.led(func(e endpoint) bool { return e.host() == k }))
}

// lingerFrom has the flow stay that brings a backend's answers.
func (t *Tables) lingerFrom(k intent.SteeringKey, s intent.Steering) bool {
	g, ok := Of(t, intent.Gateways).LookupLocked(k.Gateway)
	from := endpoint{g.VNI, k.Protocol, k.Prefix.Addr(), k.Port}
	return ok && s.Key == k && k.Kind == intent.SteerAnswer && t.balances(g.VNI, k.Gateway) &&
		(t.ways.from.keeps(from) || t.led(func(e endpoint) bool { return e == from }))
}

// led tells whether a VIP that is to be changed, and waits, leads to a backend as it is.
func (t *Tables) led(match func(endpoint) bool) bool {
	_, found := Of(t, intent.VIPs).UnplacedLocked(func(k intent.VIPKey, _ intent.VIP) bool {
		return Of(t, intent.VIPs).MayBeLocked(k, func(v intent.VIP) bool {
			return slices.ContainsFunc(v.Backends.All(), func(b intent.Backend) bool {
				return match(endpoint{k.VNI, k.Protocol, b.Addr, b.Port})
			})
		})
	})
	return found
}

// balances tells whether the programs look for flows in what passes a gateway port: its VRF
// is theirs, and has VIPs, be they OVN's.
func (t *Tables) balances(vni intent.VNI, gateway intent.GatewayKey) bool {
	g, ok := Of(t, intent.Gateways).LookupLocked(gateway)
	if !ok || g.VNI != vni || t.ways.vips[vni] == 0 || !Of(t, intent.VRFs).WantedLocked(vni) {
		return false
	}
	return !Of(t, intent.VRFs).KnownLocked() ||
		Of(t, intent.VRFs).MayBeLocked(vni, func(v intent.VRF) bool { return v.VNI == vni && v.Path == intent.PathEBPF })
}

// toChanged tells of the ways to backends.
func (t *Tables) toChanged(events []reconcile.Event[intent.RouteKey]) {
	made, broken := map[intent.VNI]bool{}, map[intent.VNI]bool{}
	t.Pipeline.View(func() {
		for _, e := range events {
			if e.Programmed {
				made[e.Key.VNI] = true
			} else if Of(t, intent.BackendRoutes).WantedLocked(e.Key) {
				broken[e.Key.VNI] = true
			}
		}
	})
	t.waysChanged(made, broken)
}

// fromChanged tells of the ways of answers.
func (t *Tables) fromChanged(events []reconcile.Event[intent.SteeringKey]) {
	made, broken := map[intent.VNI]bool{}, map[intent.VNI]bool{}
	t.Pipeline.View(func() {
		for _, e := range events {
			g, ok := Of(t, intent.Gateways).LookupLocked(e.Key.Gateway)
			switch {
			case !ok || !isEarly(e.Key):
			case e.Programmed:
				made[g.VNI] = true
			case Of(t, intent.SteeringFlows).WantedLocked(e.Key):
				broken[g.VNI] = true
			}
		}
	})
	t.waysChanged(made, broken)
}
