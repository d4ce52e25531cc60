package ebpf

import (
	"fmt"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
)

// Attached tells whether a device has the program, and the second line, as Attach
// leaves them. The error
// is what Attach would say of others' programs, or why it cannot be told.
func (d *Dataplane) Attached(p Program, ifindex int) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	hook := d.pickHook()
	var ok bool
	var err error
	if hook == HookClsact {
		if ok, err = p.at(d.pins()).HasFilter(d.programs[p], ifindex); err == nil && !ok {
			ok, err = d.keepsOlder(p, hook, ifindex)
		}
	} else {
		ok, err = p.at(d.pins()).HasLink(ifindex)
	}
	if err != nil {
		return false, fmt.Errorf("program %s of device %d by %s: %w", p, ifindex, hook, err)
	}
	if !p.closes() {
		return ok, nil
	}
	second, err := pinned.Refuses(ifindex)
	if err != nil {
		return false, fmt.Errorf("second line of device %d: %w", ifindex, err)
	}
	return ok && second, nil
}
