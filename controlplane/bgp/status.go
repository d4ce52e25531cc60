package bgp

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// Status is the speaker's state, for people and for a metrics collector.
type Status struct {
	ASN       uint32
	RouterID  netip.Addr
	RouterMAC intent.MAC
	// VTEP is the next hop of this node's announcements.
	VTEP netip.Addr
	// Problem is why no session can start, such as a port that is taken. "": none.
	Problem string
	// Dials: the BGP server does not take the connections that it is given, but dials, and sessions
	// start one to two seconds later.
	Dials bool
	// SameRouterID are other nodes whose routes carry this node's router ID: a reflector
	// takes the two nodes for one. SameVTEP are those whose next hop is this node's VTEP.
	SameRouterID, SameVTEP []Identity
	// Wanted and Announced count Type-5 routes; Announced is what every
	// established neighbour has been sent.
	Wanted, Announced int
	// Exposed counts the addresses that are announced as plain unicast for the
	// default VRF.
	Exposed int
	// Imported counts rows (VRF and prefix), VTEPs the accepted outer sources.
	Imported, VTEPs int
	// Stale counts the imported rows that are kept for a lost node.
	Stale     int
	InSync    bool
	Neighbors []NeighborStatus
	VRFs      map[intent.VNI]VRFStatus
}

// NeighborStatus is one session.
type NeighborStatus struct {
	// Address is invalid while the router of Interface has not been heard.
	Address netip.Addr
	// Interface is the link of a neighbour that is found there; else empty.
	Interface   string
	ASN         uint32
	Description string
	// State is the session's: idle, connect, active, opensent, openconfirm,
	// established, or prefix-limit for a session that MaxPrefixes ended.
	State string
	// Since is the start of the session, or of its absence. Zero: never up.
	Since time.Time
	// Flaps counts how often an established session was lost since the start.
	Flaps uint32
	// EndOfRIB: in this session the neighbour has sent all that it had.
	EndOfRIB bool
	// Synced: the neighbour's imports count as complete.
	Synced bool
	// PeerRestarting: the neighbour's routes are kept while it restarts.
	PeerRestarting bool
	// Families are those that the session is to have.
	Families Families
	// UnicastReceived counts the plain unicast routes held, UnicastSent those that the
	// neighbour has been sent in this session.
	UnicastReceived, UnicastSent int
	// UnicastRejected counts the plain unicast routes held that are not used, by reason.
	UnicastRejected map[Reason]int
	// Received counts the Type-5 routes held, Rejected those of them that are
	// not imported, by reason.
	Received int
	Rejected map[Reason]int
	// RejectedTotal counts rejections since the start.
	RejectedTotal map[Reason]uint64
	// Sent counts the Type-5 routes that the neighbour has been sent in this session.
	Sent int
	// Retry is when a session that MaxPrefixes ended is tried again; zero for others.
	Retry time.Time
	// LastError is why the session last ended, or why it did not come up. "": never,
	// or not known.
	LastError string
	// Ignored counts the UPDATEs of this session whose routes could not be read.
	Ignored int
	// Missing are those of Families that the neighbour of an established session has
	// not negotiated: no route of theirs goes either way. LastError says so.
	Missing Families
	// MessagesIn and MessagesOut count UPDATEs.
	MessagesIn, MessagesOut uint64
}

// Name is the neighbour for people: its address, or the link that it is to be
// found on.
func (ns NeighborStatus) Name() string {
	if !ns.Address.IsValid() {
		return ns.Interface
	}
	return ns.Address.String()
}

// Carries tells whether routes of a family go in and out (RFC 4760 section 8).
func (ns NeighborStatus) Carries(one Families) bool {
	return ns.State == stateEstablished && ns.Families.Has(one) && !ns.Missing.Has(one)
}

// Carries tells whether some neighbour carries a family.
func (st Status) Carries(one Families) bool {
	return slices.ContainsFunc(st.Neighbors, func(ns NeighborStatus) bool { return ns.Carries(one) })
}

const stateEstablished = "established"

// StatePrefixLimit is the state of a session that MaxPrefixes ended.
const StatePrefixLimit = status.NeighborPrefixLimit

// Progress is another one after whatever may change the Status, but for counters of
// messages.
type Progress struct {
	events    uint64
	announced int
}

// Progress is cheap, as Status is not.
func (s *GoBGP) Progress() (p Progress) {
	s.outMu.Lock()
	p.announced = len(s.out.sent)
	s.outMu.Unlock()
	s.in.mu.Lock()
	p.events = s.in.events
	s.in.mu.Unlock()
	return p
}

// Status reads the present state. Before Run the neighbours are idle.
func (s *GoBGP) Status(ctx context.Context) (Status, error) {
	st := Status{ASN: s.cfg.ASN, RouterID: s.cfg.RouterID, RouterMAC: s.cfg.RouterMAC, VTEP: s.cfg.vtep()}
	s.outMu.Lock()
	st.Announced, st.Exposed = len(s.out.sent), s.unicastOut.exposed()
	told := s.unicastOut.byFamily()
	told[FamilyEVPN] = st.Announced
	for _, vrf := range s.out.wanted {
		st.Wanted += len(vrf)
	}
	server := s.server
	st.Problem, st.Dials = s.problem, s.dials
	s.outMu.Unlock()

	if err := s.askSessions(ctx, server); err != nil {
		return st, err
	}
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	st.InSync, st.VTEPs = s.in.inSync, len(s.in.rib.vteps)
	for _, vrf := range s.in.rib.routes {
		st.Imported += len(vrf)
	}
	st.VRFs = s.in.rib.vrfStatus()
	st.Stale = s.in.rib.staleRows()
	st.SameRouterID, st.SameVTEP = s.doubles()
	for _, n := range s.neighborsLocked() {
		st.Neighbors = append(st.Neighbors, s.neighborLocked(n, told))
	}
	return st, nil
}

// neighborLocked is the state of one neighbour, with what every established neighbour
// has been sent of each family.
func (s *GoBGP) neighborLocked(n Neighbor, told map[Families]int) NeighborStatus {
	a := n.Address
	ns := NeighborStatus{Address: n.Address, Interface: n.Interface, Families: n.Families, UnicastRejected: map[Reason]int{}, ASN: n.ASN, Description: n.Description, State: "idle",
		Rejected: map[Reason]int{}, RejectedTotal: map[Reason]uint64{}, LastError: s.ends.of(a)}
	if c := s.in.rib.neighbors[a]; c != nil {
		ns.Received, ns.Rejected, ns.RejectedTotal = c.received, maps.Clone(c.rejected), maps.Clone(c.total)
	}
	if c := s.unicastIn.counts[a]; c != nil {
		ns.UnicastReceived, ns.UnicastRejected = c.received, maps.Clone(c.rejected)
	}
	if sync := s.sync[a]; sync != nil {
		ns.EndOfRIB, ns.Synced, ns.Flaps = sync.endOfRIB, sync.done, sync.flaps
	}
	ns.Ignored = s.ends.ignoredUpdates(a)
	s.sync[a].show(&ns, s.ends.lingers(a))
	if l := s.links[n.Interface]; l != nil && l.problem != "" && ns.State != stateEstablished {
		ns.LastError = strings.TrimPrefix(ns.LastError+"; "+l.problem, "; ")
	}
	if sync := s.sync[a]; sync != nil && sync.added {
		ns.State = s.connectedState(n.Address, ns.State, sync.held())
	}
	if why := s.sync[a].holds(); why != "" && ns.State != stateEstablished && !strings.Contains(ns.LastError, why) {
		ns.LastError = strings.TrimPrefix(ns.LastError+"; "+why, "; ")
	}
	if ns.State == StatePrefixLimit {
		ns.Retry = s.retry[a]
	}
	// The export policy lets out all routes of our own and nothing else.
	for _, f := range ns.Families.List() {
		switch {
		case !ns.Carries(f):
		case f == FamilyEVPN:
			ns.Sent = told[f]
		default:
			ns.UnicastSent += told[f]
		}
	}
	return ns
}

// connectedState is a session's state where the server's own connection says nothing of the
// neighbour's: it sends OPEN before there is one.
func (s *GoBGP) connectedState(a netip.Addr, state string, held bool) string {
	switch {
	case state == stateEstablished || state == StatePrefixLimit:
	case held:
		return "idle"
	case state == "opensent" && !s.connections.Connected(a):
		return "active"
	}
	return state
}
