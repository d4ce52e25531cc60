package ebpf

import (
	"errors"
	"fmt"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// at is where a program is attached.
func (p Program) at(dir string) pinned.Place {
	return pinned.Place{Dir: dir, Program: p.String(), First: p.closes(), Anywhere: p.onTap(), Egress: p == ClientOut}
}

// Attach makes a program that of a device's ingress, or egress, and puts the second
// line behind it, except where the device is the host's or a VM's: behind UnderlayIn,
// ClientIn and ClientOut. Any other
// device has to be down still, or have it already: whatever comes in before is the
// host's. Attaching again is no change.
func (d *Dataplane) Attach(p Program, ifindex int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	hook := d.pickHook()
	if p.closes() {
		if err := pinned.Refuse(ifindex); err != nil {
			return fmt.Errorf("second line of device %d: %w", ifindex, err)
		}
	} else if hook == HookClsact {
		ensure := pinned.EnsureIngress
		if p == ClientOut {
			ensure = pinned.EnsureEgress
		}
		if err := ensure(ifindex); err != nil {
			return fmt.Errorf("attach %s to device %d: %w", p, ifindex, err)
		}
	}
	kept, err := d.keepsOlder(p, hook, ifindex)
	switch {
	case err != nil || kept:
	case len(d.older) > 0 && d.later != nil:
		err = fmt.Errorf("%w for the programs of this build, which are being loaded", reconcile.ErrNotReady)
	case hook == HookTCX:
		// A filter from before a kernel upgrade or a change of the hook is only
		// reached when the link is gone; it goes once the link is there.
		var made bool
		made, err = p.at(d.pins()).Link(d.programs[p], ifindex)
		if made {
			d.links.made++
		}
		if err == nil {
			err = errors.Join(p.at(d.pins()).Unfilter(ifindex), d.forgetSome())
		}
	default:
		err = p.at(d.pins()).Filter(d.programs[p], ifindex)
	}
	if err != nil {
		return fmt.Errorf("attach %s to device %d by %s: %w", p, ifindex, hook, err)
	}
	return nil
}

// Detach takes a program off a device. After it the device drops what comes in:
// the second line stays. A device that is gone is no error.
func (d *Dataplane) Detach(p Program, ifindex int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var err error
	if d.pickHook() == HookTCX {
		err = p.at(d.pins()).Unlink(ifindex)
	} else {
		err = p.at(d.pins()).Unfilter(ifindex)
	}
	if err != nil {
		return fmt.Errorf("detach %s from device %d: %w", p, ifindex, err)
	}
	return nil
}

func (d *Dataplane) pickHook() Hook {
	d.hook = d.hook.Pick()
	return d.hook
}

// linkCount are the pinned links that forgetGone left, and those made since.
type linkCount struct{ left, made int }

// forgetSome is forgetGone for each new link, or where there are many for each group of
// new ones: it looks at all of them, and a start may make thousands.
func (d *Dataplane) forgetSome() error {
	if d.links.made == 0 || 64*d.links.made < d.links.left {
		return nil
	}
	return d.forgetGone()
}

// forgetGone removes the pins of links whose devices are gone, as that of a veth
// pair that was deleted.
func (d *Dataplane) forgetGone() error {
	d.links = linkCount{}
	for _, p := range d.plane.programs() {
		pins, err := p.at(d.pins()).ForgetGone()
		if err != nil {
			return err
		}
		d.links.left += pins
	}
	return nil
}

// attached lists the devices that have a pinned link.
func (d *Dataplane) attached(p Program) ([]int, error) { return p.at(d.pins()).Linked() }
