package namespace

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// pair is a veth pair between the node and a namespace of Sluice's, whose mark its outer
// end has.
type pair struct {
	space                 space
	outside, inside       string
	outsideMAC, insideMAC intent.MAC
}

func hardware(m intent.MAC) net.HardwareAddr { return net.HardwareAddr(m[:]) }

func up(l netlink.Link) bool { return l.Attrs().Flags&net.FlagUp != 0 }

// unfinished tells whether a crash left the outer end between creation and mark.
func (p pair) unfinished(l netlink.Link) bool {
	a := l.Attrs()
	return l.Type() == "veth" && !up(l) && len(a.AltNames) == 0 && string(a.HardwareAddr) == string(p.outsideMAC[:])
}

func (p pair) marked(l netlink.Link) bool { return slices.Contains(l.Attrs().AltNames, p.space.mark) }

// ends tells whether two devices may be the ends of one pair.
func ends(outer, inner netlink.Link) bool {
	o, i := outer.Attrs(), inner.Attrs()
	return outer.Type() == "veth" && inner.Type() == "veth" && o.ParentIndex == i.Index && i.ParentIndex == o.Index
}

// joined tells whether the outer end leads to the inner one, by its name, in the
// namespace. Indices alone do not tell: each namespace counts its own.
func (p pair) joined(h *netlink.Handle, outer netlink.Link) (ok bool, err error) {
	err = p.space.namespace().Netlink(func(h *netlink.Handle) error {
		l, err := kernel.Find(h, p.inside)
		ok = err == nil && l != nil && ends(outer, l)
		return err
	})
	if err != nil || !ok {
		return false, err
	}
	f, err := os.Open(p.space.path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	id, err := h.GetNetNsIdByFd(int(f.Fd()))
	if err != nil {
		return false, fmt.Errorf("%s: its number: %w", p.space, err)
	}
	return id >= 0 && id == outer.Attrs().NetNsID, nil
}

// ensure finds the pair or makes it, and returns the outer end. The namespace is there.
// broken is called before what is left of a pair goes.
func (p pair) ensure(h *netlink.Handle, broken func() error) (netlink.Link, error) {
	outer, err := kernel.Find(h, p.outside)
	if err != nil {
		return nil, err
	}
	if outer != nil && p.marked(outer) {
		if joined, err := p.joined(h, outer); err != nil || joined {
			return outer, err
		}
	} else if outer != nil && !p.unfinished(outer) {
		return nil, fmt.Errorf("device %s: %w", p.outside, reconcile.ErrForeign)
	}
	if err := broken(); err != nil {
		return nil, err
	}
	if outer != nil {
		if err := h.LinkDel(outer); err != nil && !errors.Is(err, unix.ENODEV) {
			return nil, fmt.Errorf("removing what is left of a pair, %s: %w", p.outside, err)
		}
	}
	return p.create(h)
}

func (p pair) create(h *netlink.Handle) (netlink.Link, error) {
	f, err := os.Open(p.space.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr = p.outside, hardware(p.outsideMAC)
	v := &netlink.Veth{LinkAttrs: attrs, PeerName: p.inside, PeerHardwareAddr: hardware(p.insideMAC), PeerNamespace: netlink.NsFd(f.Fd())}
	if err := h.LinkAdd(v); err != nil {
		return nil, fmt.Errorf("creating %s and %s: %w", p.outside, p.inside, err)
	}
	outer, err := kernel.Find(h, p.outside)
	if err != nil {
		return nil, err
	}
	if outer == nil {
		return nil, fmt.Errorf("%s has gone since it was created", p.outside)
	}
	if err := h.LinkAddAltName(outer, p.space.mark); err != nil {
		return nil, fmt.Errorf("marking %s: %w", p.outside, err)
	}
	return outer, nil
}

// remove takes the pair away if it is Sluice's.
func (p pair) remove(h *netlink.Handle) error {
	outer, err := kernel.Find(h, p.outside)
	if err != nil || outer == nil {
		return err
	}
	if !p.marked(outer) && !p.unfinished(outer) {
		return fmt.Errorf("device %s: %w", p.outside, reconcile.ErrForeign)
	}
	// It goes with a namespace, too, a while after that has gone.
	if err := h.LinkDel(outer); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("removing %s: %w", p.outside, err)
	}
	return nil
}

// settleOuter makes the outer end as it has to be, but for up; mtu 0: it has any.
func settleOuter(h *netlink.Handle, outer netlink.Link, mtu int) error {
	if mtu != 0 && outer.Attrs().MTU != mtu {
		if err := h.LinkSetMTU(outer, mtu); err != nil {
			return fmt.Errorf("setting MTU %d of %s: %w", mtu, outer.Attrs().Name, err)
		}
	}
	return kernel.Close(h, outer)
}
