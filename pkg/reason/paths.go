package reason

// Reasons for the path of a VRF.
const (
	PathAuto       = "auto"
	PathConfigured = "configured"
	PathAnnotated  = "annotated"
	MapFull        = "map-full"
	PathOnly       = "only-path"
)

// Paths lists the reasons for the path of a VRF.
func Paths() []Entry {
	return []Entry{
		{PathAuto, nil, "", "Nothing speaks against the eBPF path.", nothing},
		{PathConfigured, nil, "", "The configuration names the path: `path`, or `evpn.vrfs.<VNI>.path`.", nothing},
		{PathAnnotated, nil, "", "A gateway port of the VRF names the path: `sluice-path`.", nothing},
		{PathOnly, nil, "", "The default VRF has no other path than eBPF.", nothing},
		{MapFull, nil, "", "A map has no room for the VRF's rows: the kernel path carries it until there is.", "Raise the limit that the detail names, in `dataplane.sizes`."},
	}
}
