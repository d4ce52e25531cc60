package underlay

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

const (
	// deviceReports is the source of objects that tell of devices of the underlay.
	deviceReports = "exposure-devices"
	kindDevice    = "underlay-device"
	// anyDevice is the key of the object that tells that there is none.
	anyDevice = "all"
)

// lackingDevices tells of devices of the underlay that are wanted and not there, and of
// neighbours to which no path was found.
func lackingDevices(wanted map[string]intent.UnderlayDevice, lost map[netip.Addr]error) []status.Object {
	all, err := link.New(netns.Namespace{}).Links()
	if err != nil {
		return []status.Object{{Kind: kindDevice, Key: anyDevice, State: status.Error, Reason: reason.NoDevice, Error: err.Error()}}
	}
	there := map[string]bool{}
	for _, l := range all {
		there[l.Name] = true
	}
	return lacking(wanted, there, lost)
}

// lacking makes the objects: of devices that are not there, of neighbours to which
// there is no path, and one of its own when no device is left.
func lacking(wanted map[string]intent.UnderlayDevice, there map[string]bool, lost map[netip.Addr]error) []status.Object {
	var out []status.Object
	say := func(key, detail string) {
		out = append(out, status.Object{Kind: kindDevice, Key: key, State: status.Warning, Reason: reason.NoDevice, Error: detail})
	}
	usable := 0
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if there[name] {
			usable++
			continue
		}
		say(name, "there is no device "+name)
	}
	for _, a := range slices.SortedFunc(maps.Keys(lost), netip.Addr.Compare) {
		say(a.String(), fmt.Sprintf("no path to BGP neighbour %s: %v", a, lost[a]))
	}
	if usable > 0 {
		return out
	}
	why := make([]string, len(out))
	for i, o := range out {
		why[i] = o.Error
	}
	return append(out, status.Object{Kind: kindDevice, Key: anyDevice, State: status.Error, Reason: reason.NoDevice,
		Error: "no device receives packets for exposed addresses, so none is announced without EVPN; give the node a route to a BGP neighbour, or name devices in exposure.devices: " +
			strings.Join(append(why, "no device is named")[:max(1, len(why))], "; ")})
}
