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
		{TapMissing, port, pending, "The port is bound here, or about to be, and has no device yet: no Interface of the integration bridge has its `iface-id`, or the kernel has no such device.", "Wait. If it stays, start the VM, or check whether its device was created."},
		{TapUnknown, port, warning, "The port has a device, but the device by which the VM's frames enter is unclear. The network's namespace serves metadata, if there can be one.", "Read the error: most often a bridge between the VM and Open vSwitch has other ports."},
		{TapNetdev, port, fine, "The device is a port of the userspace datapath (DPDK, vhost-user), which bypasses programs on the device. The network's namespace serves metadata; with `metadata.path: ebpf` nothing does, which is a warning.", nothing},
		{TapChanged, port, pending, "The kernel and Open vSwitch have different indices for the device: it was created again, and one of the two has not noticed.", "Wait. If it stays, check whether ovs-vswitchd runs."},
		{TapConflict, port, broken, "Another port has the same tap and VLAN, and is served. This port is not served.", "Remove one of the two Interfaces or subports."},
		{ExternalPort, port, fine, "The port is of type external (SR-IOV, bare metal) and has no tap on this node. The network's namespace serves metadata; with `metadata.path: ebpf` nothing does, which is a warning.", nothing},
		{ParentMissing, port, pending, "The port is a trunk's subport, and the trunk's port is not bound to this node.", "Wait. If it stays, find where `parent_port` is bound."},
		{BadTag, port, broken, "The port is a trunk's subport, and its tag is no VLAN, or its trunk's port has no tap.", "Set a tag from 1 to 4094, and `parent_port` to the port of a VM."},
		{NoAddress, port, withheld, "The port has no MAC in OVN (`unknown`), so its requests cannot be attributed to it.", "Give the port its addresses, if it needs metadata."},
		{NoInstance, port, pending, "OVN does not name the port's instance yet (`neutron:device_id`). The port's requests are answered with 404.", "Wait. If it stays, set the key in the Northbound database."},
		{NetworkMissing, port, pending, "The row of the port's switch is missing so far.", nothing},
		{NetworkConflict, network, broken, "Two switches with ports on this node have one name. Sluice names the second by its UUID and gives it no namespace, so that requests of the two stay apart.", "Give the switches different names."},
		{NoMetadataPort, port, warning, "The port cannot be served from a tap, and its network has no metadata port in OVN for a namespace.", "Let Neutron create one (`[ovn] ovn_metadata_enabled`), or add a localport with `neutron:device_id=ovnmeta-NETWORK`."},
		{NoMetadataAddress, port, warning, "The network's metadata port has no address in the port's subnet, so replies from the namespace have no path back.", "Enable DHCP on the subnet: Neutron then gives the metadata port an address. Or set `neutron:cidrs` of the localport."},
		{ACLDenied, port, withheld, "With `metadata.securityGroups: respect` the port's ACLs deny its metadata requests. The requests are left to OVN, which drops them.", "Nothing; or allow TCP port 80 to 169.254.169.254 and fe80::a9fe:a9fe in a security group."},
		{ACLUnknown, port, warning, "With `metadata.securityGroups: respect`: the port's ACLs are unknown. Metadata requests are left to OVN, or to the network's namespace, if there can be one. For a VM on a switch with VIPs: the port's ACLs are unknown, and OVN balances its packets (`loadBalancing.aclUnknown`).", "Read the error: most often `ovn.nb` is not set, or an ACL names something that Sluice does not read."},
	}
}
