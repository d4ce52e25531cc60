package wire

import "net/netip"

// Kind is what an Event tells.
type Kind uint8

const (
	// ConnectFailed: Err is why there is no connection.
	ConnectFailed Kind = iota
	// Connected: there is one.
	Connected
	// Established: both ends have confirmed the session.
	Established
	// UpdateIgnored: an UPDATE could not be read.
	UpdateIgnored
	// Withheld: the neighbour has not got the End-of-RIB that the server has sent.
	Withheld
	// Ended: the connection is over; End is why.
	Ended
	// Doubled: Doubles are all other nodes whose routes have something of this node's, as
	// the session shows them.
	Doubled
)

// Event is news of a connection.
type Event struct {
	Neighbor netip.Addr
	Kind     Kind
	// Local is this end's address, of Established.
	Local   netip.Addr
	Err     error
	End     End
	Doubles []Double
}

// End is why a connection is over.
type End struct {
	// Sent and Received are the NOTIFICATION, if one ended it.
	Sent, Received *Notice
	// Why says more than the NOTIFICATION; "": nothing.
	Why string
	// Established: there was a session. Graceful: each end keeps the other's routes (RFC
	// 4724, RFC 8538).
	Established, Graceful bool
	// ASN is the neighbour's; 0: it has sent no OPEN.
	ASN uint32
}

// graceful is what RFC 4724 section 4.2 and RFC 8538 section 3 take for a restart.
func (e End) graceful(a Agreement) bool {
	switch {
	case !e.Established || !a.Restart:
		return false
	case e.Received != nil:
		return a.Notices && !e.Received.hardReset()
	case e.Sent != nil:
		return e.Sent.Code == codeHold
	}
	return true
}
