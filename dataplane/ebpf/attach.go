package ebpf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// Attach makes a program the ingress program of a device, and puts the second
// line behind it, except where the host has the device: behind UnderlayIn. Any other
// device has to be down still, or have it already: whatever comes in before is the
// host's. Attaching again is no change.
func (d *Dataplane) Attach(p Program, ifindex int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	hook := d.pickHook()
	if p.closes() {
		if err := refuse(ifindex); err != nil {
			return fmt.Errorf("second line of device %d: %w", ifindex, err)
		}
	} else if hook == HookClsact {
		if err := ensureIngress(ifindex); err != nil {
			return fmt.Errorf("attach %s to device %d: %w", p, ifindex, err)
		}
	}
	kept, err := d.keepsOlder(p, hook, ifindex)
	switch {
	case err != nil || kept:
	case hook == HookTCX:
		// A filter from before a kernel upgrade or a change of the hook is only
		// reached when the link is gone; it goes once the link is there.
		if err = d.attachTCX(p, ifindex); err == nil {
			err = errors.Join(detachClsact(p, ifindex), d.forgetSome())
		}
	default:
		err = attachClsact(p, d.programs[p], ifindex)
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
		err = d.detachTCX(p, ifindex)
	} else {
		err = detachClsact(p, ifindex)
	}
	if err != nil {
		return fmt.Errorf("detach %s from device %d: %w", p, ifindex, err)
	}
	return nil
}

func (d *Dataplane) pickHook() Hook {
	d.hook = d.hook.pick()
	return d.hook
}

// pick turns auto into what the kernel has.
func (h Hook) pick() Hook {
	switch {
	case h != HookAuto:
		return h
	case haveTCX():
		return HookTCX
	}
	return HookClsact
}

// haveTCX asks the kernel for the programs of a device that there is in every
// namespace; only kernels with tcx know the question.
func haveTCX() bool {
	_, err := link.QueryPrograms(link.QueryOptions{Target: 1, Attach: ebpf.AttachTCXIngress})
	return err == nil
}

func linkPin(dir string, p Program, ifindex int) string {
	return filepath.Join(dir, fmt.Sprintf("link_%s_%d", p, ifindex))
}

func (d *Dataplane) attachTCX(p Program, ifindex int) error {
	pin := linkPin(d.dir, p, ifindex)
	l, err := openLink(pin, ifindex)
	if err != nil {
		return err
	}
	if l != nil {
		defer l.Close()
		if err := updateLink(l, d.programs[p]); err != nil {
			return err
		}
		return p.checkFirst(l, ifindex)
	}
	l, err = link.AttachTCX(link.TCXOptions{
		Interface: ifindex, Program: d.programs[p].prog, Attach: ebpf.AttachTCXIngress, Anchor: link.Head(),
	})
	if err != nil {
		return err
	}
	// The pin holds the link from here on; the program stays when l is closed.
	defer l.Close()
	if err := l.Pin(pin); err != nil {
		return fmt.Errorf("pin link: %w", err)
	}
	d.links.made++
	return p.checkFirst(l, ifindex)
}

// checkFirst refuses a hook where another program decides before ours: what it
// lets pass is the host's. On the host's own devices others may come first.
func (p Program) checkFirst(l link.Link, ifindex int) error {
	if !p.closes() {
		return nil
	}
	info, err := l.Info()
	if err != nil {
		return fmt.Errorf("read link: %w", err)
	}
	hook, err := link.QueryPrograms(link.QueryOptions{Target: ifindex, Attach: ebpf.AttachTCXIngress})
	if err != nil {
		return fmt.Errorf("list the programs of the hook: %w", err)
	}
	if len(hook.Programs) == 0 || hook.Programs[0].ID != info.Program {
		var before []string
		for _, other := range hook.Programs {
			if other.ID == info.Program {
				break
			}
			before = append(before, strconv.Itoa(int(other.ID)))
		}
		return fmt.Errorf("program %s (see `bpftool prog show id`) decides before Sluice's; take it off or put it behind: %w",
			strings.Join(before, ", "), reconcile.ErrForeign)
	}
	return nil
}

// detachTCX detaches before it unpins: the kernel lets go of an unpinned link
// only some time later.
func (d *Dataplane) detachTCX(p Program, ifindex int) error {
	return detachPinned(linkPin(d.dir, p, ifindex), ofDevice(ifindex))
}

// detachPinned detaches what openPinned opens, if anything.
func detachPinned(pin string, at place) error {
	l, err := openPinned(pin, at)
	if err != nil || l == nil {
		return err
	}
	defer l.Close()
	if err := l.Detach(); err != nil {
		return fmt.Errorf("detach link: %w", err)
	}
	return os.Remove(pin)
}

// openLink opens the pinned link of a device. One whose device is gone is removed: nil.
func openLink(pin string, ifindex int) (link.Link, error) {
	return openPinned(pin, ofDevice(ifindex))
}

// place tells where a link is to be: ours, if the link is of the type for such a place,
// and alive, if the place is there still.
type place func(*link.Info) (ours, alive bool)

// ofDevice: a device may go away, and with it what the link does. Its number may be
// given to a new one.
func ofDevice(ifindex int) place {
	return func(info *link.Info) (ours, alive bool) {
		tcx := info.TCX()
		return tcx != nil, tcx != nil && int(tcx.Ifindex) == ifindex
	}
}

// openPinned opens a pinned link. One whose place is gone is removed: nil.
func openPinned(pin string, at place) (link.Link, error) {
	l, err := link.LoadPinnedLink(pin, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open link %s: %w", pin, err)
	}
	info, err := l.Info()
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("read link %s: %w", pin, err)
	}
	ours, alive := at(info)
	if !ours {
		l.Close()
		return nil, fmt.Errorf("link %s is of type %v: %w", pin, info.Type, reconcile.ErrForeign)
	}
	if !alive {
		l.Close()
		return nil, os.Remove(pin)
	}
	return l, nil
}

// updateLink makes a program that of a link without a packet in between that
// sees none or both. A link that is pinned in our directory is ours.
func updateLink(l link.Link, r *running) error {
	info, err := l.Info()
	if err != nil {
		return fmt.Errorf("read link: %w", err)
	}
	if id, ok := r.id(); ok && id == info.Program {
		return nil
	}
	if err := l.Update(r.prog); err != nil {
		return fmt.Errorf("update link: %w", err)
	}
	return nil
}

// updateLinks replaces the program wherever it is attached.
func (d *Dataplane) updateLinks(p Program, r *running) error {
	if d.pickHook() != HookTCX {
		return replaceClsact(p, r)
	}
	attached, err := d.attached(p)
	if err != nil {
		return err
	}
	for _, ifindex := range attached {
		l, err := openLink(linkPin(d.dir, p, ifindex), ifindex)
		if err != nil {
			return err
		}
		if l == nil {
			continue
		}
		err = updateLink(l, r)
		l.Close()
		if err != nil {
			return fmt.Errorf("device %d: %w", ifindex, err)
		}
	}
	return nil
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
	for _, p := range allPrograms() {
		attached, err := d.attached(p)
		if err != nil {
			return err
		}
		d.links.left += len(attached)
		for _, ifindex := range attached {
			l, err := openLink(linkPin(d.dir, p, ifindex), ifindex)
			if err != nil {
				return err
			}
			if l != nil {
				l.Close()
			}
		}
	}
	return nil
}

// attached lists the devices that have a pinned link.
func (d *Dataplane) attached(p Program) ([]int, error) { return pinnedLinks(d.dir, p) }

func pinnedLinks(dir string, p Program) ([]int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read pin directory: %w", err)
	}
	var out []int
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), "link_"+p.String()+"_")
		if n, err := strconv.Atoi(digits); ok && err == nil {
			out = append(out, n)
		}
	}
	return out, nil
}

// isGone tells whether an error says that a device is not there.
func isGone(err error) bool { return errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOENT) }
