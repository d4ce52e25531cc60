package reason

// Reasons of ports whose metadata requests are served in another way than from their tap,
// or not at all, and of their networks.
const (
	TapMissing        = "tap-missing"
	TapUnknown        = "tap-unknown"
	TapNetdev         = "tap-netdev"
	TapChanged        = "tap-changed"
	TapConflict       = "tap-conflict"
	ExternalPort      = "external-port"
	ParentMissing     = "parent-missing"
	BadTag            = "bad-tag"
	NoAddress         = "no-address"
	NoInstance        = "no-instance"
	NetworkMissing    = "network-missing"
	NetworkConflict   = "network-conflict"
	NoMetadataPort    = "no-metadata-port"
	NoMetadataAddress = "no-metadata-address"
	ACLDenied         = "acl-denied"
	ACLUnknown        = "acl-unknown"
)

// metadataObjects are the reasons of objects of the reporter metadata. Those of ports
// that have a namespace as well are no more than a note there.
func metadataObjects() []Entry {
	port, network := []string{"port"}, []string{"network"}
	return []Entry{
		{TapMissing, port, pending, "The port is bound here, or about to come, and its device is not there yet: no Interface of the integration bridge has its `iface-id`, or the kernel has no such device.", "Nothing, unless it stays: start the VM, or see whether its device was made."},
		{TapUnknown, port, warning, "There is a device, and which one the VM's frames come in by is not clear. Metadata is served by the network's namespace, if there can be one.", "See the error: most often a bridge between the VM and Open vSwitch has other ports."},
		{TapNetdev, port, fine, "The device is a port of the userspace datapath (DPDK, vhost-user), which takes frames past any program on it. Metadata is served by the network's namespace; with `metadata.path: ebpf` it is not, which is a warning.", nothing},
		{TapChanged, port, pending, "The kernel and Open vSwitch name different indices for the device: it was made again, and one of the two has not seen that.", "Nothing, unless it stays: then see whether ovs-vswitchd runs."},
		{TapConflict, port, broken, "Another port has the same tap with the same VLAN. That one is served, this one is not.", "Take one of the two Interfaces, or subports, away."},
		{ExternalPort, port, fine, "The port is of type external (SR-IOV, bare metal): it has no tap on this node. Metadata is served by the network's namespace; with `metadata.path: ebpf` it is not, which is a warning.", nothing},
		{ParentMissing, port, pending, "The port is a trunk's subport, and its trunk's port is not bound to this node.", "Nothing, unless it stays: then see where `parent_port` is bound."},
		{BadTag, port, broken, "The port is a trunk's subport, and its tag is no VLAN, or its trunk's port has no tap.", "Set a tag from 1 to 4094, and `parent_port` to the port of a VM."},
		{NoAddress, port, withheld, "The port has no MAC in OVN (`unknown`), so nobody knows whose its requests are.", "Give the port its addresses, if it needs metadata."},
		{NoInstance, port, pending, "OVN does not name the port's instance yet (`neutron:device_id`): its requests are answered with 404.", "Nothing, unless it stays: then set it in the Northbound database."},
		{NetworkMissing, port, pending, "The row of the port's switch is still to come.", nothing},
		{NetworkConflict, network, broken, "Two switches with ports on this node have one name. Requests of the one must not be taken for the other's: the second goes by its UUID, and has no namespace.", "Give them names of their own."},
		{NoMetadataPort, port, warning, "The port cannot be served from a tap, and its network has no metadata port in OVN that a namespace could be made of.", "Have Neutron make one (`[ovn] ovn_metadata_enabled`), or add a localport with `neutron:device_id=ovnmeta-NETWORK`."},
		{NoMetadataAddress, port, warning, "The network's metadata port has no address in the port's subnet, so answers from the namespace find no way back.", "Switch DHCP on for the subnet: Neutron gives the metadata port an address then. Or set `neutron:cidrs` of the localport."},
		{ACLDenied, port, withheld, "With `metadata.securityGroups: respect`: the port's ACLs do not let it ask for metadata. It is left to OVN, which drops what it asks.", "Nothing; or let it out to 169.254.169.254 and fe80::a9fe:a9fe, TCP port 80, in a security group."},
		{ACLUnknown, port, warning, "With `metadata.securityGroups: respect`: it is not known whether the port's ACLs let it ask for metadata. It is left to OVN, and served by the network's namespace if there can be one. Of a VM on a switch with VIPs: the ACLs of its port are not known, and OVN balances what it sends (`loadBalancing.aclUnknown`).", "See the error: most often `ovn.nb` is not set, or an ACL names something that Sluice does not read."},
	}
}
