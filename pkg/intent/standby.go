package intent

import "net/netip"

// FabricAddress is where the fabric reaches a node.
type FabricAddress struct {
	VTEP      netip.Addr
	RouterMAC MAC
}

// Place is where a gateway port is that may come to this node.
type Place struct {
	Gateway GatewayKey
	// Chassis is the name of the chassis that has it: empty while none has, or its
	// name is not known yet.
	Chassis string
	// At is where the fabric reaches that chassis; the zero value while it is not
	// known.
	At FabricAddress
}
