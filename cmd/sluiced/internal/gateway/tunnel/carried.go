package tunnel

import (
	"errors"
	"log/slog"
	"net/netip"
	"strings"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// Carried is whether forwarding went on until this start. Neighbours are told so only
// of what was read back and is sound (RFC 4724 section 3, the F bit): they keep this
// node's routes then, and send to it, until it has announced them anew.
type Carried struct {
	device error // of sluice-vxlan, before it was mended
	pinned error
	// vtep: what is sent to the node is lost while it has not its tunnel address.
	vtep error
	// fabric is the number of sluice-vxlan; 0: VXLAN devices of VRFs have the UDP port,
	// or nothing has.
	fabric int
	// carries: sluice-vxlan has the UDP port.
	carries bool
}

// LookBack looks at sluice-vxlan as the last process left it, and for the VTEP.
func (t *Tunnel) LookBack() (k Carried) {
	s, err := t.device(nil).Check()
	switch {
	case err != nil:
		k.device = err
	case s.Yields:
	case len(s.Differs) > 0:
		k.device = errors.New("sluice-vxlan: " + strings.Join(s.Differs, "; "))
		fallthrough
	default:
		k.fabric, k.carries = s.IfIndex, s.Up
	}
	k.pinned = ebpf.ErrNothingKept // until the pins are there to be read
	k.vtep = keepsVTEP(t.cfg.VTEP)
	return k
}

// keepsVTEP tells why the node takes no packets for its tunnel address.
func keepsVTEP(vtep netip.Addr) error {
	facts := link.New(netns.Namespace{})
	takes, err := facts.Takes(vtep)
	if err != nil || takes {
		return err
	}
	addresses, err := facts.Addresses()
	if err != nil {
		return err
	}
	return errors.New(VTEPLost(vtep, "", deviceOf(addresses, vtep)))
}

// Forwarded tells whether it did, and says in the log why it did not.
func (k Carried) Forwarded(log *slog.Logger) bool {
	if errors.Is(k.pinned, ebpf.ErrNothingKept) {
		return false
	}
	err := errors.Join(k.device, k.pinned, k.vtep)
	if err != nil {
		log.Warn("pinned programs may not have forwarded; BGP does not announce preserved forwarding", "error", err)
	}
	return err == nil
}
