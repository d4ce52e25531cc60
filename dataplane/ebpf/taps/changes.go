package taps

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// Changes is what Load would do to the pinned maps and programs.
func (r *Reader) Changes(staleAfter time.Duration) ([]status.Change, error) {
	specs, err := mapSpecs()
	if err != nil {
		return nil, err
	}
	var out []status.Change
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		if r.maps[name] == nil {
			out = append(out, status.Change{Table: "map", Key: name, Action: "add", Wanted: fmt.Sprintf("%d rows", specs[name].MaxEntries)})
		}
	}
	remade := len(out) > 0
	objects, err := programSpecs(specs, staleAfter)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{proxyIn, tapIn} {
		action, actual, err := pinned.Change(r.dir, name, objects[name], remade)
		if err != nil {
			return nil, fmt.Errorf("program %s: %w", name, err)
		}
		if action != "" {
			out = append(out, status.Change{Table: "program", Key: name, Action: action, Actual: actual, Wanted: "of this build, with this node's constants"})
		}
	}
	return out, nil
}

// Attachments is what would be done so that proxy_in is on the proxy's device, of index 0 if
// it is yet to be made, and tap_in on the taps of these indices and names and no others.
func (r *Reader) Attachments(proxy string, index uint32, wanted map[uint32]string) ([]status.Change, error) {
	var out []status.Change
	add := func(program, device string) {
		out = append(out, status.Change{Table: "attachment", Key: program + " on " + device, Action: "add", Wanted: "by " + r.hook.String()})
	}
	ok, err := r.proxyAttached(int(index))
	if err != nil {
		return nil, fmt.Errorf("program %s of device %s: %w", proxyIn, proxy, err)
	}
	if !ok {
		add(proxyIn, proxy)
	}
	attached, err := r.Attached()
	if err != nil {
		return nil, err
	}
	for _, ifindex := range slices.Sorted(maps.Keys(wanted)) {
		if !slices.Contains(attached, ifindex) {
			add(tapIn, wanted[ifindex])
		}
	}
	for _, ifindex := range attached {
		device, err := net.InterfaceByIndex(int(ifindex))
		if wanted[ifindex] != "" || err != nil {
			continue // of a device that has gone the program has, too
		}
		out = append(out, status.Change{Table: "attachment", Key: tapIn + " on " + device.Name, Action: "delete", Actual: "by " + r.hook.String()})
	}
	return out, nil
}

// proxyAttached tells whether a device is as AttachProxy leaves it, whichever build's program
// it has.
func (r *Reader) proxyAttached(ifindex int) (bool, error) {
	at := proxyAt(r.dir)
	has := at.HasLink
	if r.hook == pinned.HookClsact {
		has = at.HasAnyFilter
	}
	if ifindex == 0 {
		return false, nil
	}
	ok, err := has(ifindex)
	if err != nil || !ok {
		return false, err
	}
	return pinned.Refuses(ifindex)
}
