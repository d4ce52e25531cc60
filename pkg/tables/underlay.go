package tables

import (
	"net/netip"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// UnderlayDrivers are the actual sides of the tables of the underlay.
type UnderlayDrivers struct {
	Routes        reconcile.Driver[netip.Prefix, intent.UnderlayRoute]
	Announcements reconcile.Driver[netip.Prefix, intent.UnderlayAnnouncement]
}

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
	Pipeline      *reconcile.Pipeline
	Routes        *reconcile.Table[netip.Prefix, intent.UnderlayRoute]
	Announcements *reconcile.Table[netip.Prefix, intent.UnderlayAnnouncement]
	src           UnderlaySources
}

// underlayRelist is how often the main table is read back: programs that tidy up a
// host's routes, network managers among them, say nothing of what they delete.
const underlayRelist = 10 * time.Second

// NewUnderlay makes the tables, empty. It does no I/O.
func NewUnderlay(d UnderlayDrivers, src UnderlaySources, opts Options) *Underlay {
	u := &Underlay{src: src}
	u.Routes = reconcile.NewTable("underlay-routes", d.Routes, reconcile.TableOptions[netip.Prefix, intent.UnderlayRoute]{
		Hold:    func(netip.Prefix, intent.UnderlayRoute) bool { return !src.BGP() },
		Behind:  onItsOwn[netip.Prefix, intent.UnderlayRoute],
		Observe: observe[netip.Prefix](opts.Status.Reporter("underlay-routes"), "underlay-route", nil),
	})
	u.Announcements = reconcile.NewTable("underlay-announcements", d.Announcements, reconcile.TableOptions[netip.Prefix, intent.UnderlayAnnouncement]{
		Gate: func(_ netip.Prefix, a intent.UnderlayAnnouncement) error {
			if !a.VTEP {
				return nil
			}
			return src.Fabric()
		},
		Behind:  onItsOwn[netip.Prefix, intent.UnderlayAnnouncement],
		Observe: observe[netip.Prefix](opts.Status.Reporter("underlay-announcements"), "underlay-announcement", nil),
	})
	u.Pipeline = reconcile.NewPipeline(reconcile.PipelineOptions{Log: opts.Log, Dry: opts.Dry, RelistEvery: underlayRelist}, u.Routes, u.Announcements)
	return u
}

// FabricChanged looks at the announcement of the VTEP again. Call it inside
// Pipeline.Update.
func (u *Underlay) FabricChanged() {
	u.Announcements.TouchWhere(func(_ netip.Prefix, a intent.UnderlayAnnouncement) bool { return a.VTEP })
}

// Held is as Tables.Held.
func (u *Underlay) Held(stage reconcile.Stage) string {
	if why := stuck(u.Pipeline, stage); why != "" {
		return why
	}
	if stage == reconcile.Stage(u.Routes) && !u.src.BGP() {
		return "not all BGP neighbours have sent their routes"
	}
	return ""
}
