package gateway

import (
	"errors"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// A drain keeps back what the node announces of OVN, and not its own tunnel address; a
// broken fabric device the two that are behind it, and not what is exposed without EVPN.
func TestWhatIsAnnounced(t *testing.T) {
	for name, tt := range map[string]struct {
		drained               bool
		broken                string
		tenant, exposed, vtep bool
	}{
		"serving":         {false, "", true, true, true},
		"drained":         {true, "", false, false, true},
		"no device":       {false, "gone", false, true, false},
		"neither of both": {true, "gone", false, false, false},
	} {
		g := deadGateway(t)
		g.withdrawn.Store(tt.drained)
		if tt.broken != "" {
			g.tunnel.Note(errors.New(tt.broken))
		}
		for what, got := range map[string]struct {
			err  error
			want bool
		}{
			"a tenant's":     {g.announcedFrom(1001), tt.tenant},
			"an exposed":     {g.announcedFrom(intent.DefaultVRF), tt.exposed},
			"the endpoint's": {g.tunnel.Gate(), tt.vtep},
		} {
			if (got.err == nil) != got.want || got.err != nil && !errors.Is(got.err, reconcile.ErrNotReady) {
				t.Errorf("%s: %s announcement: %v", name, what, got.err)
			}
		}
	}
}
