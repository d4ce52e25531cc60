package intent

// Tap is the device by which a VM's frames come in. The zero value: none that a
// program can be put on.
type Tap struct {
	Name    string
	IfIndex uint32
	// VLAN is the tag of a trunk's subport; 0: the port itself, whose frames have none.
	VLAN uint16
}

// Interface is an Interface of the local Open vSwitch database, with external_ids:iface-id,
// whose device is asked for.
type Interface struct {
	// Name and Type are the columns; a type is "", "system", "internal", "dpdk",
	// "dpdkvhostuserclient" …
	Name, Type string
	// Userspace: the Bridge's datapath_type is netdev. Open vSwitch then reads frames of
	// the device from a socket or from DPDK.
	Userspace bool
}

// TapDevice is the device that was found for an Interface.
type TapDevice struct {
	Name    string
	IfIndex uint32
	// Reason and Detail say why there is none: reason.TapMissing, TapUnknown or TapNetdev.
	Reason, Detail string
}
