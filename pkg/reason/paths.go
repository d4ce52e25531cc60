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
		{PathAuto, nil, "", "Nothing prevents the eBPF path.", nothing},
		{PathConfigured, nil, "", "The configuration names the path: `path`, or `evpn.vrfs.<VNI>.path`.", nothing},
		{PathAnnotated, nil, "", "A gateway port of the VRF names the path: `sluice-path`.", nothing},
		{PathOnly, nil, "", "The default VRF has the eBPF path only.", nothing},
		{PathChanging, nil, "", "The chosen path differs from the one in use; the detail names it and why. The VRF changes over when the chosen path is complete. The VRF's error names what delays it.", "Run `sluicectl vrf show VNI` and read the VRF's error."},
		{MapFull, nil, "", "A map has no room for the VRF's rows. The kernel path carries the VRF meanwhile.", "Raise the limit that the detail names, in `dataplane.sizes`. The map `groups` has no setting."},
	}
}
