package pinned

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

	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

const linkPrefix = "link_"

// LinkPin is where the link of a program that belongs to no device is pinned.
func LinkPin(dir, program string) string { return filepath.Join(dir, linkPrefix+program) }

func (at Place) linkPin(ifindex int) string {
	return LinkPin(at.Dir, fmt.Sprintf("%s_%d", at.Program, ifindex))
}

// Link attaches a program to a device by a link, or makes it that of the link that is
// there. It tells whether it made one.
func (at Place) Link(p *Program, ifindex int) (made bool, err error) {
	if err := p.holdCall(at.Dir, at.Program); err != nil {
		return false, err
	}
	l, err := at.open(ifindex)
	if err != nil {
		return false, err
	}
	if l != nil {
		defer l.Close()
		if err := update(l, p); err != nil {
			return false, err
		}
		return false, at.checkFirst(l, ifindex)
	}
	l, err = link.AttachTCX(link.TCXOptions{
		Interface: ifindex, Program: p.Program, Attach: at.hook(), Anchor: link.Head(),
	})
	if err != nil {
		return false, err
	}
	// The pin holds the link from here on; the program stays when l is closed.
	defer l.Close()
	if err := l.Pin(at.linkPin(ifindex)); err != nil {
		return false, fmt.Errorf("pin link: %w", err)
	}
	return true, at.checkFirst(l, ifindex)
}

// checkFirst refuses a hook where another program decides before ours: what it
// lets pass is the host's. On the host's own devices others may come first.
func (at Place) checkFirst(l link.Link, ifindex int) error {
	if !at.First {
		return nil
	}
	info, err := l.Info()
	if err != nil {
		return fmt.Errorf("read link: %w", err)
	}
	hook, err := link.QueryPrograms(link.QueryOptions{Target: ifindex, Attach: at.hook()})
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
		return fmt.Errorf("program %s (see `bpftool prog show id`) decides before Sluice's; detach it, or attach it behind: %w",
			strings.Join(before, ", "), reconcile.ErrForeign)
	}
	return nil
}

// Unlink takes the program and its link off a device. It detaches before it unpins: the
// kernel lets go of an unpinned link only some time later.
func (at Place) Unlink(ifindex int) error {
	return Detach(at.linkPin(ifindex), ofDevice(ifindex))
}

// Detach detaches what OpenLink opens, if anything.
func Detach(pin string, at Target) error {
	l, err := OpenLink(pin, at)
	if err != nil || l == nil {
		return err
	}
	defer l.Close()
	if err := l.Detach(); err != nil {
		return fmt.Errorf("detach link: %w", err)
	}
	return os.Remove(pin)
}

// open opens the pinned link of a device. One whose device is gone is removed: nil.
func (at Place) open(ifindex int) (link.Link, error) {
	return OpenLink(at.linkPin(ifindex), ofDevice(ifindex))
}

// Target tells where a link is to be: ours, if the link is of the type for such a place,
// and alive, if the place is there still.
type Target func(*link.Info) (ours, alive bool)

// ofDevice: a device may go away, and with it what the link does. Its number may be
// given to a new one.
func ofDevice(ifindex int) Target {
	return func(info *link.Info) (ours, alive bool) {
		tcx := info.TCX()
		return tcx != nil, tcx != nil && int(tcx.Ifindex) == ifindex
	}
}

// OpenLink opens a pinned link. One whose place is gone is removed: nil.
func OpenLink(pin string, at Target) (link.Link, error) {
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

// update makes a program that of a link without a packet in between that
// sees none or both. A link that is pinned in our directory is ours.
func update(l link.Link, p *Program) error {
	info, err := l.Info()
	if err != nil {
		return fmt.Errorf("read link: %w", err)
	}
	if id, ok := p.ID(); ok && id == info.Program {
		return nil
	}
	if err := l.Update(p.Program); err != nil {
		return fmt.Errorf("update link: %w", err)
	}
	return nil
}

func (at Place) updateLinks(p *Program) error {
	_, err := at.eachLink(func(l link.Link, ifindex int) error {
		if err := update(l, p); err != nil {
			return fmt.Errorf("device %d: %w", ifindex, err)
		}
		return nil
	})
	return err
}

// eachLink opens the links one by one. The pins of those whose devices are gone, as
// that of a veth pair that was deleted, are removed. It tells how many pins there were.
func (at Place) eachLink(do func(l link.Link, ifindex int) error) (pins int, err error) {
	linked, err := at.Linked()
	if err != nil {
		return 0, err
	}
	for _, ifindex := range linked {
		l, err := at.open(ifindex)
		if err != nil {
			return 0, err
		}
		if l == nil {
			continue
		}
		err = do(l, ifindex)
		l.Close()
		if err != nil {
			return 0, err
		}
	}
	return len(linked), nil
}

// ForgetGone removes the pins of links whose devices are gone. It tells how many pins
// it looked at.
func (at Place) ForgetGone() (pins int, err error) {
	return at.eachLink(func(link.Link, int) error { return nil })
}

// UnlinkAll takes the program off the devices that have a link, and leaves the pins.
func (at Place) UnlinkAll() error {
	_, err := at.eachLink(func(l link.Link, ifindex int) error {
		if err := l.Detach(); err != nil && !errors.Is(err, ebpf.ErrNotSupported) {
			return fmt.Errorf("detach %s from device %d: %w", at.Program, ifindex, err)
		}
		return nil
	})
	return err
}

// Linked lists the devices that have a pinned link. They may be gone.
func (at Place) Linked() ([]int, error) {
	entries, err := os.ReadDir(at.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read pin directory: %w", err)
	}
	var out []int
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), linkPrefix+at.Program+"_")
		if n, err := strconv.Atoi(digits); ok && err == nil {
			out = append(out, n)
		}
	}
	return out, nil
}

// HasLink tells whether a device has the program by a link, and whether it is where it
// has to be. It changes nothing.
func (at Place) HasLink(ifindex int) (bool, error) {
	l, _, err := at.read(ifindex)
	if err != nil || l == nil {
		return false, err
	}
	defer l.Close()
	return true, at.checkFirst(l, ifindex)
}

// LinkedProgram is the program that a device has by a link. It changes nothing.
func (at Place) LinkedProgram(ifindex int) (id ebpf.ProgramID, ok bool, err error) {
	l, info, err := at.read(ifindex)
	if err != nil || l == nil {
		return 0, false, err
	}
	return info.Program, true, l.Close()
}

// read opens a link that is on the device; nil: there is none.
func (at Place) read(ifindex int) (link.Link, *link.Info, error) {
	pin := at.linkPin(ifindex)
	l, err := link.LoadPinnedLink(pin, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("open link %s: %w", pin, err)
	}
	info, err := l.Info()
	if err != nil {
		l.Close()
		return nil, nil, fmt.Errorf("read link %s: %w", pin, err)
	}
	// A link that was detached by force has no device.
	if _, alive := ofDevice(ifindex)(info); !alive {
		l.Close()
		return nil, nil, nil
	}
	return l, info, nil
}
