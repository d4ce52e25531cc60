package reason

// Reasons for the path of a VIP, besides PathAuto and PathConfigured.
const (
	BackendOutside = "backend-outside"
	SCTPPort       = "sctp-port"
	NoBackends     = "no-backends"
	KernelPath     = "kernel-path"
	ProviderVIP    = "provider-address"
	ForcedSNAT     = "forced-snat"
	MartianVIP     = "martian-address"
	// For a VM's taps.
	ACLByDestination = "acl"
)

// VIPs lists the reasons for the path of a VIP.
func VIPs() []Entry {
	return []Entry{
		{PathAuto, nil, "", "Nothing speaks against eBPF.", nothing},
		{PathConfigured, nil, "", "`options:sluice-path` of the load balancer is `ovn`.", nothing},
		{BackendOutside, nil, "", "For packets from the fabric: a backend is in no network of the router, the router translates it, or another router of the VRF exposes its address. For those of VMs: a backend is neither on their switch nor in a network of a router of it. OVN balances the VIP.", "See what `sluicectl lb list -o json` says of the backend: connect its network to the router, or take it off the load balancer."},
		{SCTPPort, nil, "", "A backend has another SCTP port than the VIP. OVN balances the VIP.", "Give backends the VIP's port."},
		{NoBackends, nil, "", "With path `ovn`: no backend is up, and `options:reject` wants clients to be told, or `options:event` somebody else, which OVN does. With path `ebpf`: no backend gets new flows, since all are down, or drained. New flows are dropped (`no_backend`), and the address is withdrawn unless another VIP of it has one.", "See `sluicectl lb backends`, and what probes say (`Service_Monitor`)."},
		{ForcedSNAT, nil, "", "`options:lb_force_snat_ip` of the logical router has OVN give balanced packets a source of the router's, so that their answers come back to it. eBPF would show backends the client. OVN balances the VIP.", "Nothing; or, if backends have a route back to clients by this router, `options:skip_snat=true` of the load balancer, or no `lb_force_snat_ip`."},
		{ProviderVIP, nil, "", "The VIP is on the network of the router's gateway port, as a floating IP is: it belongs to the default VRF, and is no address of the tenant's. OVN balances it; the tenant's VRF does not announce it.", "Have `exposure.floatingIPs` announce it, if it is to be reached from the underlay; give the load balancer a VIP of another network to have it in the tenant's VRF."},
		{MartianVIP, nil, "", "Nobody forwards to the VIP's address, or to a backend's: it is a loopback, link-local, multicast or broadcast one, or in 0.0.0.0/8. OVN balances the VIP; nobody is told of a route to it.", "Give the load balancer another VIP, or the backend another address."},
		{SNATSource, nil, "", "The VIP may be the source of packets that the router translates, and Sluice does not serve the router's default next hop: a route to it would take their answers. OVN balances the VIP; nobody is told of a route to it.", "Give the load balancer a VIP of its own; or have Sluice serve the next hop (`sluice-next-hops`)."},
		{ACLByDestination, nil, "", "An ACL of the VM's port, looking at the address or port that packets go to, may say another thing of a VIP than of one of its backends, which it would see in the VIP's place; the detail names the three. OVN balances what the VM sends.", "Nothing; or have egress rules of its security groups name the backends as they name the VIP, or neither."},
		{KernelPath, nil, "", "The VRF is on the kernel path, where OVN balances.", "See the VRF's own reason in `sluicectl vrf list`."},
	}
}
