package bfd

import (
	"encoding/binary"
	"time"
)

// State is that of a session (RFC 5880 section 4.1).
type State uint8

// The states.
const (
	AdminDown State = iota
	Down
	Init
	Up
)

// String is the state in one word.
func (s State) String() string { return [...]string{"admin-down", "down", "init", "up"}[s&3] }

// Diagnostic is why a session last left Up (RFC 5880 section 4.1).
type Diagnostic uint8

// The diagnostics that this side sends.
const (
	NoDiagnostic  Diagnostic = 0
	TimeExpired   Diagnostic = 1
	NeighborDown  Diagnostic = 3
	AdministDown  Diagnostic = 7
	maxDiagnostic Diagnostic = 31 // 5 bits
)

var diagnostics = [...]string{
	"", "detection time expired", "echo function failed", "neighbor signaled session down", "forwarding plane reset",
	"path down", "concatenated path down", "administratively down", "reverse concatenated path down",
}

// String is the diagnostic in the words of the RFC; "" for none.
func (d Diagnostic) String() string {
	if int(d) < len(diagnostics) {
		return diagnostics[d]
	}
	return "reserved diagnostic"
}

// Packet is a BFD control packet (RFC 5880 section 4.1) without authentication.
type Packet struct {
	Diagnostic  Diagnostic
	State       State
	Poll, Final bool
	// Independent is the C bit: the sender's BFD outlives its control plane.
	Independent bool
	Demand      bool
	// Multiplier is the detection time in the sender's intervals.
	Multiplier uint8
	// Mine is the sender's discriminator, Yours what it knows of the receiver's; 0:
	// nothing yet.
	Mine, Yours uint32
	// MinTx is the shortest interval that the sender would like to send with, MinRx
	// the shortest that it can receive; 0: it wants no packets. On the wire both are
	// in microseconds.
	MinTx, MinRx time.Duration
	// MinEchoRx is that of the echo function; 0: there is none.
	MinEchoRx time.Duration
}

// Lengths, versions and bits of RFC 5880 section 4.1.
const (
	version      = 1
	packetLength = 24
	authLength   = 2 // the least that follows where the A bit is set

	bitPoll        = 0x20
	bitFinal       = 0x10
	bitIndependent = 0x08
	bitAuth        = 0x04
	bitDemand      = 0x02
	bitMultipoint  = 0x01
)

// Drop is why a received packet is not used.
type Drop string

// The reasons, in the order of RFC 5880 section 6.8.6; then ours.
const (
	dropNone       Drop = ""
	DropVersion    Drop = "version"
	DropLength     Drop = "length"
	DropMultiplier Drop = "multiplier"
	DropMultipoint Drop = "multipoint"
	// DropDiscriminator: the sender names no discriminator of its own, or none of
	// ours in a state in which it has to know it.
	DropDiscriminator Drop = "discriminator"
	// DropUnknown: no session has the discriminator, or none the addresses.
	DropUnknown Drop = "unknown-session"
	// DropSource: the session named has another neighbour, interface or local
	// address, or is of the other kind.
	DropSource Drop = "source"
	// DropTTL: the packet came further than is allowed (RFC 5881 section 5).
	DropTTL Drop = "ttl"
	// DropAuthentication: the neighbour authenticates, which this side cannot.
	DropAuthentication Drop = "authentication"
	// DropAdminDown: the session is switched off here.
	DropAdminDown Drop = "admin-down"
)

// Drops are all reasons.
func Drops() []Drop {
	return []Drop{DropVersion, DropLength, DropMultiplier, DropMultipoint, DropDiscriminator, DropUnknown, DropSource, DropTTL,
		DropAuthentication, DropAdminDown}
}

// Parse reads the payload of a UDP packet and checks what can be checked without a
// session. Of a packet with authentication the rest is given all the same.
func Parse(b []byte) (Packet, Drop) {
	if len(b) < packetLength {
		return Packet{}, DropLength
	}
	if b[0]>>5 != version {
		return Packet{}, DropVersion
	}
	flags, length := b[1], int(b[3])
	least := packetLength
	if flags&bitAuth != 0 {
		least += authLength
	}
	if length < least || length > len(b) {
		return Packet{}, DropLength
	}
	micro := func(at int) time.Duration { return time.Duration(binary.BigEndian.Uint32(b[at:])) * time.Microsecond }
	p := Packet{
		Diagnostic: Diagnostic(b[0]) & maxDiagnostic, State: State(flags >> 6), Poll: flags&bitPoll != 0, Final: flags&bitFinal != 0,
		Independent: flags&bitIndependent != 0, Demand: flags&bitDemand != 0, Multiplier: b[2],
		Mine: binary.BigEndian.Uint32(b[4:]), Yours: binary.BigEndian.Uint32(b[8:]), MinTx: micro(12), MinRx: micro(16), MinEchoRx: micro(20),
	}
	switch {
	case p.Multiplier == 0:
		return p, DropMultiplier
	case flags&bitMultipoint != 0:
		return p, DropMultipoint
	case p.Mine == 0, p.Yours == 0 && p.State != Down && p.State != AdminDown:
		return p, DropDiscriminator
	case flags&bitAuth != 0:
		return p, DropAuthentication
	}
	return p, dropNone
}

// Append adds the packet's wire form to b.
func (p Packet) Append(b []byte) []byte {
	flags := byte(p.State&3) << 6
	for bit, set := range map[byte]bool{bitPoll: p.Poll, bitFinal: p.Final, bitIndependent: p.Independent, bitDemand: p.Demand} {
		if set {
			flags |= bit
		}
	}
	b = append(b, version<<5|byte(p.Diagnostic&maxDiagnostic), flags, p.Multiplier, packetLength)
	b = binary.BigEndian.AppendUint32(b, p.Mine)
	b = binary.BigEndian.AppendUint32(b, p.Yours)
	for _, d := range []time.Duration{p.MinTx, p.MinRx, p.MinEchoRx} {
		b = binary.BigEndian.AppendUint32(b, uint32(d/time.Microsecond))
	}
	return b
}

var authTypes = [...]string{"reserved", "simple password", "keyed MD5", "meticulous keyed MD5", "keyed SHA1", "meticulous keyed SHA1"}

// authType names the type of authentication of a packet that Parse found to have
// one (RFC 5880 section 4.1).
func authType(b []byte) string {
	if t := int(b[packetLength]); t < len(authTypes) {
		return authTypes[t]
	}
	return "unknown"
}
