package tables

import (
	"maps"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// leaveTime is how long a VM's row stays, and what it needs, after its port has left the
// node. At the end of a live migration OVN binds the port to no chassis for a moment, between
// the one that it leaves and the one where it is already: what the VM sends then would
// go to VIPs as it is, and OVN would send it to other backends.
const leaveTime = 5 * time.Second

// leaving are the VMs whose ports have left. Guarded by the pipeline.
type leaving struct {
	now func() time.Time
	// wake has a pass made after some time.
	wake func(time.Duration)
	of   map[intent.TapClientKey]left
}

// left is a VM that has left.
type left struct {
	scope intent.VNI
	until time.Time
}

// lingerClient has the row of a VM stay for leaveTime.
func (c *Clients) lingerClient(k intent.TapClientKey, v intent.TapClient) bool {
	now := c.leaving.now()
	m, known := c.leaving.of[k]
	if known && now.Sub(m.until) < leaveTime {
		return now.Before(m.until)
	}
	// A VM that was back meanwhile leaves anew.
	maps.DeleteFunc(c.leaving.of, func(_ intent.TapClientKey, m left) bool { return now.Sub(m.until) >= leaveTime })
	c.leaving.of[k] = left{v.Scope, now.Add(leaveTime)}
	c.leaving.wake(leaveTime)
	return true
}

// deserted tells whether all VMs of a switch have left, and not for long: what they need
// stays as long as they do.
func (c *Clients) deserted(scope intent.VNI) (yes bool) {
	Of(c, intent.TapClients).EachUnwantedLocked(func(k intent.TapClientKey, v intent.TapClient) {
		yes = v.Scope == scope && c.lingerClient(k, v) || yes
	})
	now := c.leaving.now()
	for _, m := range c.leaving.of {
		yes = yes || m.scope == scope && now.Before(m.until)
	}
	if !yes {
		return false
	}
	Of(c, intent.TapClients).EachLocked(func(k intent.TapClientKey, v intent.TapClient) {
		if m, known := c.leaving.of[k]; v.Scope == scope && !(known && now.Before(m.until)) {
			yes = false
		}
	})
	return yes
}
