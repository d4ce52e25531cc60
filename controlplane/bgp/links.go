package bgp

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/underlay"
)

// sessionLink is the link that a session ends with. The zero value: none, since packets to the
// neighbour may take another path when a link is lost.
type sessionLink struct {
	name string
	// index is 0 while the link is not there, or has no carrier.
	index int
}

// down tells why no session can be on the link; empty if one can, or if there is no link.
func (o sessionLink) down() string {
	if o.name == "" || o.index != 0 {
		return ""
	}
	return fmt.Sprintf("the link %s is down", o.name)
}

// restsOn is the link that a session with the neighbour ends with, as of FRR's fast external
// failover: that of a link-local address, and of an external neighbour one hop away the link
// with the longest network that its address is in.
func (n Neighbor) restsOn(asn uint32, links []underlay.Link) sessionLink {
	if zone := n.Address.Zone(); zone != "" {
		i := slices.IndexFunc(links, func(l underlay.Link) bool { return l.Name == zone && l.Carrier })
		if i < 0 {
			return sessionLink{name: zone}
		}
		return sessionLink{zone, links[i].Index}
	}
	external := n.External || n.ASN != asn
	if !external || n.MultihopTTL > 1 || n.TTLSecurity > 1 || !n.Address.IsValid() {
		return sessionLink{}
	}
	best, bits := sessionLink{}, -1
	for _, l := range links {
		if l.Loopback {
			continue
		}
		for _, p := range l.Prefixes {
			// A link without carrier counts where no other has the network.
			longer := p.Bits() > bits || p.Bits() == bits && best.index == 0 && l.Carrier
			if p.IsSingleIP() || !p.Contains(n.Address) || !longer {
				continue
			}
			best, bits = sessionLink{name: l.Name}, p.Bits()
			if l.Carrier {
				best.index = l.Index
			}
		}
	}
	return best
}

// LinksChanged tells the links of the node. Sessions end with theirs, and are begun again when
// it is back. It returns at once.
func (s *GoBGP) LinksChanged(links []underlay.Link) {
	s.in.mu.Lock()
	s.nodeLinks = links
	for _, n := range s.sync {
		s.restLocked(n)
	}
	for name, l := range s.links {
		now := Neighbor{Address: anyLinkLocal(name)}.restsOn(s.cfg.ASN, links)
		if now == l.on {
			continue
		}
		// Whoever is on the link when it comes back may be another router.
		l.on, l.heard = now, time.Time{}
		select {
		case l.changed <- struct{}{}:
		default:
		}
	}
	s.in.mu.Unlock()
	s.paths.look()
}

// restLocked notes the link that a neighbour's session rests on now. A session that rested on
// another one is to end. Before the first LinksChanged nothing is known.
func (s *GoBGP) restLocked(n *neighborSync) {
	if s.nodeLinks == nil {
		return
	}
	was := n.on
	if n.on = n.config.restsOn(s.cfg.ASN, s.nodeLinks); n.on != was && n.established && was.index != 0 {
		n.lostLink = was.name
	}
}

// takeLinksLocked gives the neighbours whose session ends with its link, with the link.
func (s *GoBGP) takeLinksLocked() map[netip.Addr]string {
	lost := map[netip.Addr]string{}
	for a, n := range s.sync {
		if n.lostLink != "" && n.established {
			lost[a] = n.lostLink
		}
		n.lostLink = ""
	}
	return lost
}
