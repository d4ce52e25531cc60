package nexthops

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// narrowPaths are the paths that take less than the underlay's MTU.
func narrowPaths(paths map[netip.Addr]link.Path, underlay int) map[netip.Addr]link.Path {
	out := map[netip.Addr]link.Path{}
	for a, p := range paths {
		if p.Refused == "" && p.MTU > 0 && p.MTU < underlay {
			out[a] = p
		}
	}
	return out
}

func mtusOf(paths map[netip.Addr]link.Path) map[netip.Addr]int {
	out := make(map[netip.Addr]int, len(paths))
	for a, p := range paths {
		out[a] = p.MTU
	}
	return out
}

func devicesOf(paths map[netip.Addr]link.Path) []string {
	names := map[string]struct{}{}
	for _, p := range paths {
		if p.Device != "" {
			names[p.Device] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// tooNarrow says what does not fit where: an object of each path that is narrow on its way,
// and one of each device that is too narrow for all paths that it carries.
func tooNarrow(narrow map[netip.Addr]link.Path, underlay int) []status.Object {
	var out []status.Object
	devices := map[string]link.Path{}
	for _, a := range slices.SortedFunc(maps.Keys(narrow), netip.Addr.Compare) {
		p := narrow[a]
		if p.MTU == p.DeviceMTU {
			devices[p.Device] = p
			continue
		}
		out = append(out, status.Object{Kind: "vtep", Key: a.String(), State: status.Warning, Reason: reason.PathMTU,
			Error: fmt.Sprintf("the path to this VTEP carries outer packets of at most %d bytes, by device %s, and the underlay's MTU is %d: larger ones are fragmented, or refused with an ICMP error, as fabric.df says; 'ip route get %s' shows the path", p.MTU, p.Device, underlay, a)})
	}
	for _, name := range slices.Sorted(maps.Keys(devices)) {
		out = append(out, status.Object{Kind: "device", Key: name, State: status.Warning, Reason: reason.PathMTU,
			Error: fmt.Sprintf("device %s has MTU %d, and the underlay's MTU was %d when sluiced started: larger packets to VTEPs are fragmented, or refused with an ICMP error, as fabric.df says", name, devices[name].MTU, underlay)})
	}
	return out
}
