package bgp

import (
	"bytes"
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/bgp/wire"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Identity is how a node is known in its routes.
type Identity struct {
	// RouterID is invalid where the routes do not tell.
	RouterID  netip.Addr
	VTEP      netip.Addr
	RouterMAC intent.MAC
}

func (i Identity) String() string {
	id := "unknown"
	if i.RouterID.IsValid() {
		id = i.RouterID.String()
	}
	return fmt.Sprintf("VTEP %s, router ID %s, router MAC %s", i.VTEP, id, i.RouterMAC)
}

func (i Identity) compare(o Identity) int {
	return cmp.Or(i.VTEP.Compare(o.VTEP), i.RouterID.Compare(o.RouterID), bytes.Compare(i.RouterMAC[:], o.RouterMAC[:]))
}

// node is the node that made a route, by its route distinguisher.
func (p *path) node() Identity {
	out := Identity{VTEP: p.hop.VTEP, RouterMAC: p.hop.RouterMAC}
	if d := p.key.rd; d[0] == 0 && d[1] == rdTypeIPv4 {
		out.RouterID = netip.AddrFrom4([4]byte(d[2:6]))
	}
	return out
}

// asOthersSee is how this node is known in its own routes.
func (s *GoBGP) asOthersSee() wire.Own {
	own := wire.Own{RouterID: s.cfg.RouterID, RouterMAC: s.cfg.RouterMAC}
	for _, a := range []netip.Addr{s.cfg.VTEP4, s.cfg.VTEP6} {
		if a.IsValid() {
			own.VTEPs = append(own.VTEPs, a)
		}
	}
	return own
}

// doubles are the other nodes with this node's router ID, or with its VTEP, as any session
// shows them.
func (s *GoBGP) doubles() (routerID, vtep []Identity) {
	s.ends.mu.Lock()
	defer s.ends.mu.Unlock()
	for _, all := range s.ends.doubles {
		for _, d := range all {
			i := Identity{RouterID: d.RouterID, VTEP: d.VTEP, RouterMAC: d.RouterMAC}
			if d.VTEP == s.cfg.VTEP4 || d.VTEP == s.cfg.VTEP6 {
				vtep = append(vtep, i)
			} else {
				routerID = append(routerID, i)
			}
		}
	}
	tidy := func(list []Identity) []Identity {
		slices.SortFunc(list, Identity.compare)
		return slices.Compact(list)
	}
	return tidy(routerID), tidy(vtep)
}
