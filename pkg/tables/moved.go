package tables

import (
	"maps"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// MoveTime is how long the routes of a gateway port that has gone to another node
// stay announced at most, and what carries their packets stays.
const MoveTime = 5 * time.Second

// moves are the gateway ports that have gone to other nodes a moment ago. Guarded by
// the pipeline.
type moves struct {
	now      func() time.Time
	until    time.Time // the last end of all
	routes   map[intent.RouteKey]time.Time
	vrfs     map[intent.VNI]time.Time
	gateways map[intent.GatewayKey]time.Time
}

func newMoves() *moves {
	return &moves{now: time.Now, routes: map[intent.RouteKey]time.Time{}, vrfs: map[intent.VNI]time.Time{}, gateways: map[intent.GatewayKey]time.Time{}}
}

// Moved tells, before their rows are taken back, of routes that this node announces
// and whose gateway ports have gone to other nodes: they stay announced until BGP
// shows a better one, so that there is one at any time, and what carries their
// packets stays for MoveTime. Call it inside an update of the pipeline; the pipeline
// has to be kicked when MoveTime is over.
func (t *Tables) Moved(routes map[intent.RouteKey]intent.Announcement) {
	m, now := t.moves, t.moves.now()
	m.forget(now)
	m.until = now.Add(MoveTime)
	for k, a := range routes {
		m.routes[k], m.vrfs[k.VNI], m.gateways[a.Gateway] = m.until, m.until, m.until
	}
}

// forget drops what is over: one move may follow another for a long time.
func (m *moves) forget(now time.Time) {
	maps.DeleteFunc(m.routes, func(_ intent.RouteKey, until time.Time) bool { return !now.Before(until) })
	maps.DeleteFunc(m.vrfs, func(_ intent.VNI, until time.Time) bool { return !now.Before(until) })
	maps.DeleteFunc(m.gateways, func(_ intent.GatewayKey, until time.Time) bool { return !now.Before(until) })
}

func (m *moves) any() bool                           { return m.now().Before(m.until) }
func (m *moves) vrf(vni intent.VNI) bool             { return m.now().Before(m.vrfs[vni]) }
func (m *moves) gateway(k intent.GatewayKey) bool    { return m.now().Before(m.gateways[k]) }
func (m *moves) announcement(k intent.RouteKey) bool { return m.now().Before(m.routes[k]) }

// segment tells whether a gateway port of the bridge and VLAN has gone: the key of
// a denied address is theirs.
func (m *moves) segment(k intent.GatewayKey) bool {
	if !m.any() {
		return false
	}
	for g := range m.gateways {
		if g.Segment() == k.Segment() && m.gateway(g) {
			return true
		}
	}
	return false
}

// bridge tells whether a gateway port of the bridge has gone.
func (m *moves) bridge(name intent.BridgeKey) bool {
	if !m.any() {
		return false
	}
	for g := range m.gateways {
		if g.Bridge == name && m.gateway(g) {
			return true
		}
	}
	return false
}

// holdAnnouncement keeps an announcement until OVN is in sync and has said all of
// its VRF; and that of a gateway port that has gone until there is a better one.
func (t *Tables) holdAnnouncement(k intent.RouteKey, _ intent.Announcement) bool {
	if !t.src.OVN() || t.src.Pending(k.VNI) {
		return true
	}
	return t.moves.announcement(k) && (t.src.Better == nil || !t.src.Better(k))
}
