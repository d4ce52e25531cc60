package taps

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
)

// Attach puts tap_in on the ingress of a tap: by tcx before the programs that are there,
// by a filter at the first priority that is free. Attaching again is no change.
func (t *Taps) Attach(ifindex uint32) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, p, n := tapsAt(t.pins()), t.programs[tapIn], int(ifindex)
	var err error
	if t.hook == pinned.HookTCX {
		// What another hook left goes when its place is taken.
		if _, err = at.Link(p, n); err == nil {
			err = at.Unfilter(n)
		}
	} else if err = pinned.EnsureTapIngress(n); err == nil {
		if err = at.Filter(p, n); err == nil {
			err = at.Unlink(n)
		}
	}
	if err != nil {
		return fmt.Errorf("attach %s to device %d by %s: %w", tapIn, ifindex, t.hook, err)
	}
	return nil
}

// Detach takes tap_in off a tap. One that is gone is no error.
func (t *Taps) Detach(ifindex uint32) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := tapsAt(t.pins())
	if err := errors.Join(at.Unlink(int(ifindex)), at.Unfilter(int(ifindex))); err != nil {
		return fmt.Errorf("detach %s from device %d: %w", tapIn, ifindex, err)
	}
	return nil
}

// Attached lists the taps that have the program. The pins of those that are gone are removed.
func (t *Taps) Attached() ([]uint32, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := tapsAt(t.pins()).ForgetGone(); err != nil {
		return nil, fmt.Errorf("taps with %s: %w", tapIn, err)
	}
	return (&Reader{dir: t.pins(), hook: t.hook}).Attached()
}

// AttachProxy puts proxy_in on the end of the proxy's pair on the node, and a second line
// behind it: nothing that comes there is the host's. Do it before the device is up.
// Doing it again is no change.
func (t *Taps) AttachProxy(ifindex uint32) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, p, n := proxyAt(t.pins()), t.programs[proxyIn], int(ifindex)
	err := pinned.Refuse(n)
	switch {
	case err != nil:
	case t.hook == pinned.HookTCX:
		if _, err = at.Link(p, n); err == nil {
			err = at.Unfilter(n)
		}
		if err == nil {
			_, err = at.ForgetGone()
		}
	default:
		if err = at.Filter(p, n); err == nil {
			err = at.Unlink(n)
		}
	}
	if err != nil {
		return fmt.Errorf("attach %s to device %d by %s: %w", proxyIn, ifindex, t.hook, err)
	}
	return nil
}

// ProxyAttached tells whether a device is as AttachProxy leaves it.
func (t *Taps) ProxyAttached(ifindex uint32) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, n := proxyAt(t.pins()), int(ifindex)
	var ok bool
	var err error
	if t.hook == pinned.HookTCX {
		ok, err = at.HasLink(n)
	} else {
		ok, err = at.HasFilter(t.programs[proxyIn], n)
	}
	if err == nil && ok {
		ok, err = pinned.Refuses(n)
	}
	if err != nil {
		return false, fmt.Errorf("program %s of device %d by %s: %w", proxyIn, ifindex, t.hook, err)
	}
	return ok, nil
}

// SetProxy says where steered packets go. The zero value: nowhere, all requests go on to
// Open vSwitch.
func (t *Taps) SetProxy(p Proxy) error {
	row := bpfProxy{Ifindex: p.Host, Inside: p.Inside, Host: p.HostMAC}
	if err := t.maps[bpfMapProxyV1].Put(uint32(0), row); err != nil {
		return fmt.Errorf("map %s: %w", bpfMapProxyV1, err)
	}
	return nil
}

// Attached lists the taps that have the program, whichever build's. It changes nothing.
func (r *Reader) Attached() ([]uint32, error) {
	at := tapsAt(r.dir)
	list, has := at.Linked, at.HasLink
	if r.hook == pinned.HookClsact {
		list, has = at.Filtered, func(int) (bool, error) { return true, nil }
	}
	devices, err := list()
	if err != nil {
		return nil, fmt.Errorf("taps with %s: %w", tapIn, err)
	}
	var out []uint32
	for _, ifindex := range devices {
		ok, err := has(ifindex)
		if err != nil {
			return nil, fmt.Errorf("taps with %s: %w", tapIn, err)
		}
		if ok {
			out = append(out, uint32(ifindex))
		}
	}
	slices.Sort(out)
	return out, nil
}
