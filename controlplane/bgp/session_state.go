package bgp

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	api "github.com/osrg/gobgp/v3/api"
	"google.golang.org/protobuf/types/known/anypb"
)

// sessionState is what the BGP server told of a neighbour's session: by its events,
// and, of an established one, when it was asked last.
type sessionState struct {
	state     api.PeerState_SessionState
	overLimit bool      // its prefix limit ended it
	asn       uint32    // the neighbour's own, of its last session; 0: none yet
	since     time.Time // it is established, or is not any more; zero: it never was

	offered    Families // by the neighbour's OPEN
	restarting bool     // the neighbour has restarted and has not sent all of its routes yet
	// updatesIn and updatesOut count UPDATE messages.
	updatesIn, updatesOut uint64
}

// askSessions asks the server for what its events do not tell. It is not asked for
// sessions that are being negotiated: it writes then, without a lock that its answer
// takes, what the answer reads.
func (s *GoBGP) askSessions(ctx context.Context, server paths) error {
	if server == nil {
		return nil
	}
	established := map[netip.Addr]string{}
	s.in.mu.Lock()
	for a, n := range s.sync {
		if n.established {
			established[a] = n.name()
		}
	}
	s.in.mu.Unlock()
	for a, name := range established {
		err := server.ListPeer(ctx, &api.ListPeerRequest{Address: name}, func(p *api.Peer) {
			s.in.mu.Lock()
			defer s.in.mu.Unlock()
			if n := s.sync[a]; n != nil {
				n.session.take(p)
			}
		})
		if err != nil {
			return fmt.Errorf("look at the BGP session of %s: %w", name, err)
		}
	}
	return nil
}

func (st *sessionState) take(p *api.Peer) {
	state := p.GetState()
	st.offered = offered(state.GetRemoteCap())
	st.restarting = p.GetGracefulRestart().GetPeerRestarting()
	st.updatesIn, st.updatesOut = state.GetMessages().GetReceived().GetUpdate(), state.GetMessages().GetSent().GetUpdate()
}

// show adds the session's part to a neighbour's status. lingers: the session's end left
// the neighbour's routes for its restart. n may be nil: no router was heard on the link.
func (n *neighborSync) show(ns *NeighborStatus, lingers bool) {
	if n == nil {
		return
	}
	st := n.session
	if st.state != api.PeerState_UNKNOWN {
		ns.State = strings.ToLower(st.state.String())
	}
	if st.overLimit {
		ns.State = StatePrefixLimit
	}
	if st.asn != 0 {
		ns.ASN = st.asn
	}
	ns.Since, ns.MessagesIn, ns.MessagesOut = st.since, st.updatesIn, st.updatesOut
	ns.PeerRestarting = n.established && st.restarting || !n.established && lingers && ns.Received+ns.UnicastReceived > 0
	// After an UPDATE that cannot be read the BGP server shows families as not offered
	// that go on all the same.
	if ns.State == stateEstablished && ns.Ignored == 0 {
		ns.Missing = ns.Families &^ st.offered
	}
	switch {
	case ns.Ignored > 0:
		ns.LastError = "UPDATEs of this session could not be read and were ignored: the neighbour's routes may differ from what is shown"
	case ns.Missing != 0:
		ns.LastError = "the neighbour has not switched on for this session: address family " + ns.Missing.spelled()
	}
}

// offered are the families among the capabilities of a neighbour's OPEN (RFC 4760
// section 8). The BGP server shows one without any as that of IPv4 unicast.
func offered(capabilities []*anypb.Any) (out Families) {
	for _, c := range capabilities {
		var m api.MultiProtocolCapability
		if c.MessageIs(&m) && c.UnmarshalTo(&m) == nil {
			out |= familyOf(m.GetFamily())
		}
	}
	return out
}
