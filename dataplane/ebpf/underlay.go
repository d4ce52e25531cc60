package ebpf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// UnderlayIn is the program of the underlay's devices, which are the host's: other packets pass to the host.
const UnderlayIn Program = 3

// closes tells whether nothing that comes to a device of the program is the host's.
func (p Program) closes() bool { return p != UnderlayIn && !p.onTap() }

// UnderlayDevices drives the map underlay and the attachments of UnderlayIn.
type UnderlayDevices struct {
	d *Dataplane
	s *store
	// attached tells whether a device has the program.
	attached func(ifindex int) (bool, error)
}

// UnderlayDevices is the driver of the table UnderlayDevices.
func (d *Dataplane) UnderlayDevices() *UnderlayDevices {
	return &UnderlayDevices{d: d, s: d.store, attached: func(ifindex int) (bool, error) { return d.Attached(UnderlayIn, ifindex) }}
}

// UnderlayDevices lists the table UnderlayDevices.
func (i *Inspection) UnderlayDevices() *UnderlayDevices {
	return &UnderlayDevices{s: i.store, attached: func(ifindex int) (bool, error) {
		ok, _, err := i.attachedProgram(i.hook.Pick(), UnderlayIn, ifindex)
		return ok, err
	}}
}

var _ reconcile.Driver[string, intent.UnderlayDevice] = (*UnderlayDevices)(nil)

// List reads the map. A device that lost its program, its name, or is another one of
// that name by now is listed with the zero value.
func (u *UnderlayDevices) List(context.Context) (map[string]intent.UnderlayDevice, error) {
	u.s.mu.Lock()
	defer u.s.mu.Unlock()
	rows, err := u.s.underlay()
	if err != nil {
		return nil, err
	}
	out := map[string]intent.UnderlayDevice{}
	for _, ifindex := range slices.Sorted(maps.Keys(rows)) {
		name := rows[ifindex]
		_, twice := out[name]
		ok, err := u.sound(ifindex, name)
		switch {
		case err != nil:
			return nil, err
		case ok && !twice:
			out[name] = intent.UnderlayDevice{Name: name}
		default:
			out[name] = intent.UnderlayDevice{}
		}
	}
	return out, nil
}

// sound tells whether a row is of the device that has the name now, with its program.
func (u *UnderlayDevices) sound(ifindex uint32, name string) (bool, error) {
	l, err := netlink.LinkByIndex(int(ifindex))
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find device %d: %w", ifindex, err)
	}
	if l.Attrs().Name != name {
		return false, nil
	}
	ok, err := u.attached(int(ifindex))
	if errors.Is(err, reconcile.ErrForeign) {
		return false, nil // Apply says so
	}
	return ok, err
}

// underlay reads the map: names by ifindex.
func (s *store) underlay() (map[uint32]string, error) {
	out := map[uint32]string{}
	_, err := pinned.Walk(s.t[bpfMapUnderlayV1], func(ifindex uint32, v bpfUnderlay) { out[ifindex] = fromChars(v.Name[:]) })
	return out, mapError(bpfMapUnderlayV1, err)
}

// Apply attaches, each after its row: answers may go out where requests come in.
func (u *UnderlayDevices) Apply(_ context.Context, rows []reconcile.Row[string, intent.UnderlayDevice]) []error {
	u.s.mu.Lock()
	defer u.s.mu.Unlock()
	var out results
	for i, r := range rows {
		if err := u.apply(r.Key); err != nil {
			out.set(len(rows), i, fmt.Errorf("underlay device %s: %w", r.Key, err))
		}
	}
	return out
}

func (u *UnderlayDevices) apply(name string) error {
	var value bpfUnderlay
	if name == "" || len(name) >= len(value.Name) {
		return fmt.Errorf("the name is not of 1..%d bytes", len(value.Name)-1)
	}
	l, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		// The kernel has taken the program off it already.
		return cmp.Or(u.remove(name, 0), fmt.Errorf("%w: there is no such device", reconcile.ErrNotReady))
	}
	if err != nil {
		return fmt.Errorf("find device: %w", err)
	}
	if l.Attrs().EncapType != "ether" {
		return fmt.Errorf("it is of type %s, and not Ethernet", l.Attrs().EncapType)
	}
	index := l.Attrs().Index
	toChars(value.Name[:], name)
	if err := u.s.put(bpfMapUnderlayV1, uint32(index), value); err != nil {
		return err
	}
	if err := u.d.Attach(UnderlayIn, index); err != nil {
		return err
	}
	return u.remove(name, uint32(index))
}

// remove takes the program and the row off all devices that had the name, but one.
func (u *UnderlayDevices) remove(name string, but uint32) error {
	rows, err := u.s.underlay()
	if err != nil {
		return err
	}
	for ifindex, is := range rows {
		if is != name || ifindex == but {
			continue
		}
		if err := u.d.Detach(UnderlayIn, int(ifindex)); err != nil {
			return err
		}
		if err := u.s.drop(bpfMapUnderlayV1, ifindex); err != nil {
			return err
		}
	}
	return nil
}

// Delete detaches.
func (u *UnderlayDevices) Delete(_ context.Context, keys []string) []error {
	u.s.mu.Lock()
	defer u.s.mu.Unlock()
	var out results
	for i, k := range keys {
		if err := u.remove(k, 0); err != nil {
			out.set(len(keys), i, fmt.Errorf("underlay device %s: %w", k, err))
		}
	}
	return out
}

// detachUnderlay detaches the program from devices with a pinned link. The devices stay, and the kernel
// detaches a link that is only unpinned some time later.
func detachUnderlay(dir string) error { return UnderlayIn.at(dir).UnlinkAll() }
