package bgp

import (
	"context"
	"encoding/binary"
	"math"
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// attrASPath is AS_PATH (RFC 4271 section 5.1.2), asSequence its usual segment.
const (
	attrASPath = 2
	asSequence = 2
)

// yieldLength is how often a node that has lost a gateway port puts its AS number
// into the path of what it still announces, beside the one time that eBGP does.
const yieldLength = 2

// prefer is the LOCAL_PREF of a route that is announced anew: one above the highest
// that siblings have for its VRF and prefix, so that everybody prefers this node at
// once, whether they have died or linger. A route keeps what it was announced with.
// Of others a prefix may be announced for good: their routes share its packets.
func (o *outbox) prefer(k intent.RouteKey) uint32 {
	_, again := o.rebid[k]
	if last, ok := o.last(k); ok && !again {
		return last.localPref
	}
	if o.highest == nil {
		return defaultLocalPref
	}
	switch seen, ok := o.highest(k); {
	case !ok || seen < defaultLocalPref:
		return defaultLocalPref
	case seen == math.MaxUint32:
		return seen
	default:
		return seen + 1
	}
}

// AddSiblings tells of VTEPs of nodes that this node's gateway ports may come from.
// One that was a sibling stays one: when its node is gone from OVN its routes may
// still be there.
func (s *GoBGP) AddSiblings(vteps []netip.Addr) {
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	for _, a := range vteps {
		s.in.rib.siblings[a] = struct{}{}
	}
}

// highest is the highest LOCAL_PREF of the paths to siblings that the VRF imports
// for a prefix.
func (r *rib) highest(k intent.RouteKey) (pref uint32, ok bool) {
	policy, known := r.policies[k.VNI]
	if !known {
		return 0, false
	}
	for p := range r.byPrefix[k.Prefix] {
		if _, sibling := r.siblings[p.hop.VTEP]; sibling && r.imports(policy, p) {
			pref, ok = max(pref, p.rank.localPref), true
		}
	}
	return pref, ok
}

func (s *GoBGP) highest(k intent.RouteKey) (uint32, bool) {
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	return s.in.rib.highest(k)
}

// Yield has the announcements of the keys lose against those of other nodes, or no
// longer: their gateway port has gone. Where LOCAL_PREF reaches the neighbours the
// new node's is higher, and nothing is sent; to neighbours of other ASes the route
// goes with a longer AS_PATH, if there are no others: a node of this AS would take
// its own AS in a path for a loop.
func (s *GoBGP) Yield(ctx context.Context, keys []intent.RouteKey, yes bool) {
	s.outMu.Lock()
	defer s.outMu.Unlock()
	for _, k := range keys {
		if yes {
			s.out.yielding[k] = struct{}{}
		} else {
			delete(s.out.yielding, k)
		}
	}
	if s.out.prepends {
		s.sendLocked(ctx, keys) // what fails is tried again by tick
	}
}

// onlyExternal tells whether all neighbours are of other ASes.
func (c Config) onlyExternal() bool {
	for _, n := range c.Neighbors {
		if n.ASN == c.ASN {
			return false
		}
	}
	return len(c.Neighbors) > 0
}

// outranked are the announced keys for which somebody else has as high a LOCAL_PREF
// or a higher one. What yields is outranked on purpose.
func (o *outbox) outranked() []intent.RouteKey {
	var out []intent.RouteKey
	for k, f := range o.sent {
		if _, yields := o.yielding[k]; yields {
			continue
		}
		if seen, ok := o.highest(k); ok && seen >= f.shared.Value().localPref {
			out = append(out, k)
		}
	}
	return out
}

// reassert announces what this node announced before it knew what others do, as
// after a restart, as preferred. It does so once, when the neighbours have sent all:
// two nodes do not go on to outbid each other.
func (s *GoBGP) reassert(ctx context.Context) {
	s.in.mu.Lock()
	synced := s.in.inSync
	s.in.mu.Unlock()
	s.outMu.Lock()
	defer s.outMu.Unlock()
	if !synced || s.out.reasserted {
		return
	}
	s.out.reasserted = true
	keys := s.out.outranked()
	for _, k := range keys {
		s.out.rebid[k] = struct{}{}
	}
	s.sendLocked(ctx, keys)
	clear(s.out.rebid)
}

// preferenceAttributes are LOCAL_PREF, and the AS_PATH of a route that yields.
func preferenceAttributes(t type5) [][]byte {
	out := [][]byte{attribute(flagTransitive, attrLocalPref, binary.BigEndian.AppendUint32(nil, t.localPref))}
	if t.prepend != 0 {
		path := []byte{asSequence, yieldLength}
		for range yieldLength {
			path = binary.BigEndian.AppendUint32(path, t.prepend)
		}
		out = append(out, attribute(flagTransitive, attrASPath, path))
	}
	return out
}
