package namespace

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// space is a named namespace, and the mark by which it is Sluice's.
type space struct{ path, mark string }

func (s space) name() string { return filepath.Base(s.path) }

func (s space) String() string { return "namespace " + s.name() }

func (s space) namespace() netns.Namespace { return netns.At(s.path) }

// marks are the alternative names of a namespace's lo.
func marks(path string) (out []string, err error) {
	err = netns.At(path).Netlink(func(h *netlink.Handle) error {
		lo, err := h.LinkByName("lo")
		if err == nil {
			out = lo.Attrs().AltNames
		}
		return err
	})
	return out, err
}

// ours tells whether there is one, and whether it is Sluice's.
func (s space) ours() (there, ours bool, err error) {
	there, err = netns.Exists(s.path)
	if err != nil || !there {
		return false, false, err
	}
	names, err := marks(s.path)
	if err != nil {
		return true, false, fmt.Errorf("%s: %w", s, err)
	}
	return true, slices.Contains(names, s.mark), nil
}

// Ours tells whether the namespace with this file is Sluice's, for a network.
func Ours(path, network string) (bool, error) {
	_, ours, err := space{path, markOf(network)}.ours()
	return ours, err
}

// ensure makes it if it is not there.
func (s space) ensure() error {
	there, ours, err := s.ours()
	switch {
	case err != nil:
		return err
	case there && !ours:
		return fmt.Errorf("%s: %w", s, reconcile.ErrForeign)
	case there:
		return nil
	}
	_, err = netns.Create(s.path, s.claim)
	return err
}

// claim marks the namespace that the thread is in.
func (s space) claim() error {
	// Of links alone: a kernel has the others only where their modules are.
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	lo, err := h.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := h.LinkAddAltName(lo, s.mark); err != nil {
		return fmt.Errorf("marking it: %w", err)
	}
	return nil
}

// remove takes it away if it is Sluice's.
func (s space) remove() error {
	there, ours, err := s.ours()
	switch {
	case err != nil || !there:
		return err
	case !ours:
		return fmt.Errorf("%s: %w", s, reconcile.ErrForeign)
	}
	return netns.Remove(s.path)
}
