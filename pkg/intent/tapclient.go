package intent

import (
	"fmt"
	"net/netip"
)

// TapClientKey is where a VM sends: a device of this node.
type TapClientKey struct {
	IfIndex uint32
	// VLAN is that of a subport of a trunk, else 0.
	VLAN uint16
}

func (k TapClientKey) String() string {
	if k.VLAN != 0 {
		return fmt.Sprintf("%d VLAN %d", k.IfIndex, k.VLAN)
	}
	return fmt.Sprint(k.IfIndex)
}

// TapClient is a VM whose connections to VIPs are balanced on its tap.
type TapClient struct {
	Key TapClientKey
	// Scope is its switch: the VNI of the VIPs that it may connect to.
	Scope VNI
	// OVN: new flows are OVN's to balance.
	OVN bool
	// Idle: its switch has no VIPs, so that nothing is on its tap. That it is known before
	// there are VIPs tells it from one that has come from another node with its connections.
	Idle bool
}

// Before is who has balanced a VM's flows to VIPs before it was a row. It is no part of the
// row: it matters when that is new.
type Before uint8

// Who it may be.
const (
	// BeforeUnknown: whoever did when the daemon started: nobody if nothing was balanced
	// here, else another node, since a VM that was here then had a row.
	BeforeUnknown Before = iota
	// BeforeNode: the VM has come while the daemon ran, from another node or to its
	// first start.
	BeforeNode
	// BeforeOVN: the VM was here without a tap that programs can be put on.
	BeforeOVN
)

// NeighborKey is an address on a switch, or beyond a router of it.
type NeighborKey struct {
	Scope VNI
	Addr  netip.Addr
}

func (k NeighborKey) String() string { return fmt.Sprintf("%s on %s", k.Addr, k.Scope) }

// Neighbor says where frames for the address of a VIP or of a backend go on a switch.
type Neighbor struct {
	Key NeighborKey
	// MAC is the address's own if it is on the switch, else that of a router's port.
	MAC MAC
	// VIP: the address has VIPs.
	VIP bool
	// Answer: VMs that ask for the MAC address are told it, since OVN does not.
	Answer bool
	// Echo: VMs' echo requests are answered.
	Echo bool
}
