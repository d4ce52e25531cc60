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
		{PathAuto, nil, "", "Nothing prevents eBPF.", nothing},
		{PathConfigured, nil, "", "`options:sluice-path` of the load balancer is `ovn`.", nothing},
		{BackendOutside, nil, "", "For the fabric: a backend is in no network of the router, the router translates it, or another router of the VRF exposes its address. For VMs: a backend is neither on their switch nor in a network of a router of that switch. OVN balances the VIP.", "Find the backend in `sluicectl lb list -o json`. Connect its network to the router, or remove it from the load balancer."},
		{SCTPPort, nil, "", "A backend has another SCTP port than the VIP. OVN balances the VIP.", "Give backends the VIP's port."},
		{NoBackends, nil, "", "With path `ovn`: no backend is up, and OVN tells clients (`options:reject`) or others (`options:event`). With path `ebpf`: all backends are down or drained. New sessions are dropped (`no_backend`), and the address is withdrawn unless another VIP of it has a backend.", "See `sluicectl lb backends`, and the probes (`Service_Monitor`)."},
		{ForcedSNAT, nil, "", "`options:lb_force_snat_ip` of the logical router translates the source of balanced packets, so that replies return to the router. eBPF would show backends the client. OVN balances the VIP.", "Nothing. If backends have a route back to clients through this router, set `options:skip_snat=true` of the load balancer, or remove `lb_force_snat_ip`."},
		{ProviderVIP, nil, "", "The VIP is on the network of the router's gateway port, as a floating IP is, and belongs to the default VRF. OVN balances it; the tenant's VRF does not announce it.", "Set `exposure.floatingIPs` to announce it to the underlay. For the tenant's VRF, give the load balancer a VIP of another network."},
		{MartianVIP, nil, "", "The address of the VIP or of a backend is never forwarded: loopback, link-local, multicast, broadcast, or in 0.0.0.0/8. OVN balances the VIP; no route to it is announced.", "Give the load balancer another VIP, or the backend another address."},
		{SNATSource, nil, "", "The VIP may be the source of packets that the router translates: a route to it would attract their replies, and Sluice does not serve the router's default next hop. OVN balances the VIP; no route to it is announced.", "Give the load balancer its own VIP, or let Sluice serve the next hop (`sluice-next-hops`)."},
		{ACLByDestination, nil, "", "An ACL of the VM's port may treat a backend differently from the VIP, by destination address or port. On eBPF the ACL would see the backend. The detail names the three. OVN balances the VM's packets.", "Nothing; or name both the VIP and the backends, or neither, in egress rules of its security groups."},
		{KernelPath, nil, "", "The VRF is on the kernel path, where OVN balances.", "See the VRF's own reason in `sluicectl vrf list`."},
	}
}
