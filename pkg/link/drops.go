package link

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
)

// Drops is one of a link's own counts of packets that it did not deliver (IFLA_STATS64).
type Drops struct {
	Link string
	// Direction is rx or tx.
	Direction string
	// Kind is errors: malformed, or not to be sent; dropped: not wanted, or no room; missed:
	// no buffer in the device.
	Kind    string
	Packets uint64
}

// Drops reads the counts of links by name. Links that are not there are left out.
func (f *Facts) Drops(names []string) ([]Drops, error) {
	var out []Drops
	err := f.ns.Netlink(func(h *netlink.Handle) error {
		for _, name := range names {
			l, err := h.LinkByName(name)
			if errors.As(err, new(netlink.LinkNotFoundError)) {
				continue
			}
			if err != nil {
				return fmt.Errorf("reading link %s: %w", name, err)
			}
			if s := l.Attrs().Statistics; s != nil {
				out = append(out, Drops{name, "rx", "errors", s.RxErrors}, Drops{name, "rx", "dropped", s.RxDropped}, Drops{name, "rx", "missed", s.RxMissedErrors},
					Drops{name, "tx", "errors", s.TxErrors}, Drops{name, "tx", "dropped", s.TxDropped})
			}
		}
		return nil
	})
	return out, err
}
