package bgp

import (
	"context"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// setAll makes the announcements be these and no others, and says that they are all.
func setAll(ctx context.Context, s *GoBGP, all map[intent.RouteKey]Announcement) map[intent.RouteKey]error {
	var upserts []Announcement
	for k, a := range all {
		a.Key = k
		upserts = append(upserts, a)
	}
	var deletes []intent.RouteKey
	s.outMu.Lock()
	for vni, vrf := range s.out.wanted {
		for p := range vrf {
			k := intent.NewRouteKey(vni, p)
			if _, ok := all[k]; !ok {
				deletes = append(deletes, k)
			}
		}
	}
	s.outMu.Unlock()
	failed := s.Update(ctx, upserts, deletes)
	s.Ready()
	return failed
}
