package tables

import (
	"net/netip"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// UnderlaySources tell whether what they are computed from is complete, as Sources.
type UnderlaySources struct {
	// BGP: every neighbour has sent its unicast routes, or has run out of time.
	BGP func() bool
	// Fabric tells why packets to the tunnel endpoint would be lost; nil when they
	// would not.
	Fabric func() error
}

// Underlay are the tables of the node's own part in the fabric, in a pipeline of
// their own: they need neither OVN nor a tenant, and wait for none.
type Underlay struct {
	group[*Underlay]
	src UnderlaySources
}

// underlayRelist is how often the main table is read back: programs that tidy up a
// host's routes, network managers among them, say nothing of what they delete.
const underlayRelist = 10 * time.Second

var underlayOrder = []entry[*Underlay]{underlayRoutes, underlayAnnouncements}

var underlayRoutes = table[*Underlay, netip.Prefix, intent.UnderlayRoute]{
	of: intent.UnderlayRoutes, from: fromBGP,
	options: func(u *Underlay, _ Options) reconcile.TableOptions[netip.Prefix, intent.UnderlayRoute] {
		return reconcile.TableOptions[netip.Prefix, intent.UnderlayRoute]{
			Hold:   func(netip.Prefix, intent.UnderlayRoute) bool { return !u.src.BGP() },
			Behind: onItsOwn[netip.Prefix, intent.UnderlayRoute],
		}
	},
}

var underlayAnnouncements = table[*Underlay, netip.Prefix, intent.UnderlayAnnouncement]{
	of: intent.UnderlayAnnouncements,
	options: func(u *Underlay, _ Options) reconcile.TableOptions[netip.Prefix, intent.UnderlayAnnouncement] {
		return reconcile.TableOptions[netip.Prefix, intent.UnderlayAnnouncement]{
			Gate: func(_ netip.Prefix, a intent.UnderlayAnnouncement) error {
				if !a.VTEP {
					return nil
				}
				return u.src.Fabric()
			},
			Behind: onItsOwn[netip.Prefix, intent.UnderlayAnnouncement],
		}
	},
}

// NewUnderlay makes the tables, empty. It does no I/O.
func NewUnderlay(d Drivers, src UnderlaySources, opts Options) *Underlay {
	u := &Underlay{src: src}
	u.begin(u, underlayOrder, d, opts, underlayRelist)
	return u
}

// FabricChanged looks at the announcement of the VTEP again. Call it inside
// Pipeline.Update.
func (u *Underlay) FabricChanged() {
	Of(u, intent.UnderlayAnnouncements).TouchWhere(func(_ netip.Prefix, a intent.UnderlayAnnouncement) bool { return a.VTEP })
}

// Held is as Tables.Held.
func (u *Underlay) Held(stage reconcile.Stage) string {
	if why := stuck(u.Pipeline, stage); why != "" {
		return why
	}
	if u.sourceOf(stage)&fromBGP != 0 && !u.src.BGP() {
		return "not all BGP neighbours have sent their routes"
	}
	return ""
}
