package gateway

import (
	"errors"
	"net/netip"
	"time"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway/nexthops"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway/paths"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway/underlay"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/plane"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/controlplane/bfd"
	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/controlplane/evpn"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// Tables are those of the gateway.
func (g *Gateway) Tables() *tables.Tables { return g.tables }

// Underlay is the node's part in the underlay.
func (g *Gateway) Underlay() *underlay.Node { return g.underlay }

// Dataplane are the programs and maps.
func (g *Gateway) Dataplane() *ebpf.Dataplane { return g.dp }

// Speaker is BGP.
func (g *Gateway) Speaker() *bgp.GoBGP { return g.speaker }

// BFD is what BFD says of the paths to the neighbours.
func (g *Gateway) BFD() bfd.Status { return g.bfd.Status() }

// Paths compares the paths of VRFs.
func (g *Gateway) Paths() *paths.Paths { return g.paths }

// NextHops follows the paths to VTEPs.
func (g *Gateway) NextHops() *nexthops.NextHops { return g.nextHops }

// Samples are the sampled drops.
func (g *Gateway) Samples() *plane.Samples { return &g.samples }

// Ended is closed when the gateway has ended.
func (g *Gateway) Ended() <-chan struct{} { return g.ended }

// Identity is who the node is in the fabric.
func (g *Gateway) Identity() settings.Identity { return g.id }

// MTU is that of the underlay.
func (g *Gateway) MTU() int { return g.mtu }

// Links are the veth pairs of provider bridges.
func (g *Gateway) Links() *kernel.BridgeLinks { return g.links }

// Status is who the node is, with facts that may be newer than its start.
func (g *Gateway) Status(f Facts) status.Identity {
	i := f.Identity()
	i.VTEP, i.RouterID, i.RouterMAC = g.id.VTEP, g.id.RouterID, g.id.RouterMAC
	return i
}

// Pipelines are those of the node, with that of the underlay where it is shown.
func (g *Gateway) Pipelines() []*reconcile.Pipeline {
	out := []*reconcile.Pipeline{g.tables.Pipeline}
	if g.underlay.Shown() {
		out = append(out, g.underlay.Tables().Pipeline)
	}
	return out
}

// Stages are the tables of the pipelines.
func (g *Gateway) Stages() []tables.Held {
	out := g.tables.Stages()
	if g.underlay.Shown() {
		out = append(out, g.underlay.Tables().Stages()...)
	}
	return out
}

// Carrier is the path that forwards a VRF's packets, or is to do so.
func (g *Gateway) Carrier(vni intent.VNI) intent.Path {
	if now, ok := g.tables.Path(vni); ok {
		return now
	}
	v, _ := tables.Of(g.tables, intent.VRFs).Wanted(vni)
	return v.Path
}

// Choice is why a VRF is to be on its path.
func (g *Gateway) Choice(vni intent.VNI) evpn.Choice {
	if vni == intent.DefaultVRF {
		return evpn.Choice{Reason: reason.PathOnly}
	}
	c, _ := g.steps.Choice(vni)
	return c
}

// PortNames are the gateway ports by their keys.
func (g *Gateway) PortNames() map[intent.GatewayKey]string {
	wanted, _ := tables.Of(g.tables, intent.Gateways).Rows()
	out := make(map[intent.GatewayKey]string, len(wanted))
	for k, row := range wanted {
		out[k] = row.LogicalPort
	}
	return out
}

// Traffic is what the programs have counted, by VRF.
func (g *Gateway) Traffic() (map[intent.VNI]ebpf.VRFCounters, error) {
	counters, err := g.dp.Reader().Counters()
	out := make(map[intent.VNI]ebpf.VRFCounters, len(counters))
	for _, c := range counters {
		out[c.VNI] = c
	}
	return out, err
}

// Waited are the rows that wait since before a time. What is announced waits by order while the
// node is drained, and while the tunnel is broken, which the component fabric tells.
func (g *Gateway) Waited(before time.Time) (out []reconcile.Wait) {
	return g.waited(before, plane.Effective(g.dp))
}

func (g *Gateway) waited(before time.Time, effective bool) (out []reconcile.Wait) {
	if g.tunnel.Gate() != nil {
		return nil
	}
	if effective && g.steps.OVNInSync() && !g.withdrawn.Load() {
		out = g.tables.Waited(before)
	}
	return append(out, g.underlay.Tables().Pipeline.Waited(before)...)
}

// HostChanged takes the node's links and addresses.
func (g *Gateway) HostChanged(links []link.Link, addresses []link.Address) {
	g.speaker.LinksChanged(underlay.Links(links))
	g.underlay.LinksChanged()
	g.tunnel.LookAtVTEP(addresses)
	g.hosts.Send()
}

// KeepPins makes pins again that are gone.
func (g *Gateway) KeepPins() error { return g.dp.KeepPins() }

// What the tunnel and the next hops ask of the gateway, and tell it.

// Imported tells whether the tables have been told what the neighbours sent.
func (g *Gateway) Imported() bool { return g.imported.Load() }

// GateChanged is told that announcements may go on, or may not.
func (g *Gateway) GateChanged() {
	g.tables.Pipeline.Update(g.tables.FabricChanged)
	g.underlay.FabricChanged()
}

// VTEPChanged is told that the node has lost its VTEP, or has it again.
func (g *Gateway) VTEPChanged() { g.nextHops.Look() }

// NoVTEP says why the node does not have its VTEP; empty: it does.
func (g *Gateway) NoVTEP() string { return g.tunnel.NoVTEP() }

// SetPathMTUs gives the programs the MTUs of narrow paths.
func (g *Gateway) SetPathMTUs(mtus map[netip.Addr]int, all bool) error {
	return g.dp.SetPathMTUs(mtus, all)
}

// Devices are those of the node's tunnels and provider bridges.
func (g *Gateway) Devices() []string { return append([]string{kernel.FabricName}, g.links.Names()...) }

// turn tells why no VRF may change its path now: the new path would lack what the
// neighbours have still to send, or the device.
func (g *Gateway) turn() error {
	if !g.bgpSync.Load() {
		return errors.New("for the routes of the neighbours")
	}
	return g.tunnel.Turn()
}

// choosePaths has the translation choose the paths of VRFs by facts: it reads OVN's rows for that.
func (g *Gateway) choosePaths(f evpn.PathFacts) {
	g.rows.View(func(*ovn.Rows) { g.steps.SetFacts(g, f) })
}
