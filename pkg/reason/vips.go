package reason

// Reasons for the path of a VIP, besides PathAuto.
const (
	BackendOutside = "backend-outside"
	SCTPPort       = "sctp-port"
	NoBackends     = "no-backends"
	KernelPath     = "kernel-path"
)

// VIPs lists the reasons for the path of a VIP.
func VIPs() []Entry {
	return []Entry{
		{PathAuto, nil, "", "Nothing speaks against eBPF.", nothing},
		{BackendOutside, nil, "", "A backend is in no network of the router that the VRF exposes, or OVN translates its address. OVN balances the VIP.", "Expose the network of the backend, or take it off the load balancer."},
		{SCTPPort, nil, "", "A backend has another SCTP port than the VIP. OVN balances the VIP.", "Give backends the VIP's port."},
		{NoBackends, nil, "", "No backend gets new flows, and `options:reject` wants clients to be told, which OVN does.", nothing},
		{KernelPath, nil, "", "The VRF is on the kernel path, where OVN balances.", "See the VRF's own reason in `sluicectl vrf list`."},
	}
}
