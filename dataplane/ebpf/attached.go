package ebpf

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cilium/ebpf/link"
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
		if ok, err = checkFilters(p, d.programs[p], ifindex); err == nil && !ok {
			ok, err = d.keepsOlder(p, hook, ifindex)
		}
	} else {
		ok, err = attachedLink(d.dir, p, ifindex)
	}
	if err != nil {
		return false, fmt.Errorf("program %s of device %d by %s: %w", p, ifindex, hook, err)
	}
	if !p.closes() {
		return ok, nil
	}
	second, err := refuses(ifindex)
	if err != nil {
		return false, fmt.Errorf("second line of device %d: %w", ifindex, err)
	}
	return ok && second, nil
}

func attachedLink(dir string, p Program, ifindex int) (bool, error) {
	pin := linkPin(dir, p, ifindex)
	l, err := link.LoadPinnedLink(pin, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open link %s: %w", pin, err)
	}
	defer l.Close()
	info, err := l.Info()
	if err != nil {
		return false, fmt.Errorf("read link %s: %w", pin, err)
	}
	// A link that was detached by force has no device.
	if tcx := info.TCX(); tcx == nil || int(tcx.Ifindex) != ifindex {
		return false, nil
	}
	return true, p.checkFirst(l, ifindex)
}
