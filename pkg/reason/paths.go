package reason

// Reasons for the path of a VRF.
const (
	PathAuto       = "auto"
	PathConfigured = "configured"
	PathAnnotated  = "annotated"
	MapFull        = "map-full"
	PathOnly       = "only-path"
	PathChanging   = "changing"
)

// Paths lists the reasons for the path of a VRF.
func Paths() []Entry {
	return []Entry{
		{PathAuto, nil, "", "Nothing speaks against the eBPF path.", nothing},
		{PathConfigured, nil, "", "The configuration names the path: `path`, or `evpn.vrfs.<VNI>.path`.", nothing},
		{PathAnnotated, nil, "", "A gateway port of the VRF names the path: `sluice-path`.", nothing},
		{PathOnly, nil, "", "The default VRF has no other path than eBPF.", nothing},
		{PathChanging, nil, "", "Another path than the one that carries the VRF is chosen. The detail names it and why; the VRF goes over to it when all of it is in place, and stays where it is as long as something is in the way, which the VRF's error names.", "See the VRF's error in `sluicectl vrf show VNI`."},
		{MapFull, nil, "", "A map has no room for the VRF's rows: the kernel path carries it until there is.", "Raise the limit that the detail names, in `dataplane.sizes`."},
	}
}
