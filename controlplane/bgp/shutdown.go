package bgp

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

const (
	attrLocalPref   = 5
	attrCommunities = 8
	// communityGracefulShutdown asks for all other paths to be used before this one
	// (RFC 8326 section 3).
	communityGracefulShutdown = 0xffff0000
)

// GracefulShutdown has every announcement, present and to come, carry the
// graceful-shutdown community and LOCAL_PREF 0, or stops that (RFC 8326 section
// 4.2). It returns after the BGP server has taken every change; those that it did
// not take are tried again.
func (s *GoBGP) GracefulShutdown(ctx context.Context, on bool) error {
	s.outMu.Lock()
	defer s.outMu.Unlock()
	if s.out.node.shutdown == on {
		return nil
	}
	s.out.node.shutdown = on
	var keys []intent.RouteKey
	for vni, vrf := range s.out.wanted {
		for p := range vrf {
			keys = append(keys, intent.RouteKey{VNI: vni, Prefix: p})
		}
	}
	unicast := s.sendUnicastLocked(ctx)
	if failed := s.sendLocked(ctx, keys); len(failed)+len(unicast) > 0 {
		return fmt.Errorf("%d of %d routes could not be announced again", len(failed)+len(unicast), len(keys)+len(s.unicastOut.wanted))
	}
	return nil
}

// shutdownAttributes are those that a route has only while the node is drained.
func shutdownAttributes() [][]byte {
	return [][]byte{
		attribute(flagTransitive, attrLocalPref, make([]byte, 4)),
		attribute(flagOptional|flagTransitive, attrCommunities, binary.BigEndian.AppendUint32(nil, communityGracefulShutdown)),
	}
}
