package nodemetrics

import (
	"strconv"
	"time"

	"github.com/ovn-sluice/sluice/pkg/metrics"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// Metrics is the registry of a process of the node.
type Metrics struct{ *metrics.Registry }

// New makes sluiced's registry. failed is told when a source cannot be read and, with
// nil, when it can be read again.
func New(version string, failed func(collector string, err error)) *Metrics {
	return &Metrics{metrics.NewRegistry(version, failed, both, daemon, databases)}
}

// ObservePass counts one pass of the reconciler.
func (m *Metrics) ObservePass(d time.Duration) { m.Observe(passSeconds, d) }

// ObserveAnnounceDelay counts one announcement.
func (m *Metrics) ObserveAnnounceDelay(d time.Duration) { m.Observe(announceDelay, d) }

// AddStatus serves the objects and components of a registry.
func (m *Metrics) AddStatus(r *status.Registry) { m.Registry.AddStatus(components, r) }

// AddTraffic serves the counters of VRFs.
func (m *Metrics) AddTraffic(read func() ([]VRFTraffic, error)) {
	metrics.AddSlice(m.Registry, "traffic", read, func(e metrics.Emitter, v VRFTraffic) {
		vni := v.VNI.String()
		e.Emit(vrfPackets, float64(v.ToFabric.Packets), vni, "to-fabric")
		e.Emit(vrfPackets, float64(v.FromFabric.Packets), vni, "from-fabric")
		e.Emit(vrfBytes, float64(v.ToFabric.Bytes), vni, "to-fabric")
		e.Emit(vrfBytes, float64(v.FromFabric.Bytes), vni, "from-fabric")
	})
}

// AddLoadBalancing serves the counters of VIPs and backends.
func (m *Metrics) AddLoadBalancing(read func() (LoadBalancing, error)) {
	m.Add("load-balancing", func(e metrics.Emitter) error {
		l, err := read()
		if err != nil {
			return err
		}
		e.Emit(vipSteps, float64(l.TableSteps))
		for _, ev := range l.Evictions {
			e.Emit(evicting, metrics.Flag(ev.Evicting), ev.Table)
			e.Emit(evictedAnswers, float64(ev.Translated), ev.Table)
		}
		for _, v := range l.VIPs {
			labels := []string{v.VNI.String(), v.Of, v.Protocol}
			v.emit(e, vipPackets, vipBytes, vipSessions, labels)
			e.Emit(vipOpen, float64(v.Open), labels...)
			e.Emit(vipTable, float64(v.TableHash>>11), labels...)
			e.Emit(vipUnrecorded, float64(v.Unrecorded), labels...)
			e.Emit(vipDrops, float64(v.Drops), labels...)
		}
		for _, b := range l.Backends {
			b.emit(e, backendPackets, backendBytes, backendSessions, []string{b.VNI.String(), b.Of, b.Protocol})
		}
		return nil
	})
}

func (b *Balanced) emit(e metrics.Emitter, packets, bytes, sessions *metrics.Metric, labels []string) {
	to, from := append(labels[:len(labels):len(labels)], "to-backends"), append(labels[:len(labels):len(labels)], "to-clients")
	e.Emit(packets, float64(b.ToBackends.Packets), to...)
	e.Emit(packets, float64(b.ToClients.Packets), from...)
	e.Emit(bytes, float64(b.ToBackends.Bytes), to...)
	e.Emit(bytes, float64(b.ToClients.Bytes), from...)
	e.Emit(sessions, float64(b.Sessions), labels...)
}

// AddPaths serves the numbers of VRFs by their path.
func (m *Metrics) AddPaths(read func() (map[Path]int, error)) {
	m.Add("paths", func(e metrics.Emitter) error {
		vrfs, err := read()
		for p, n := range vrfs {
			e.Emit(vrfPaths, float64(n), p.Path, p.Reason)
		}
		return err
	})
}

// AddVMs serves the numbers of VMs by what balances their sessions.
func (m *Metrics) AddVMs(read func() []status.VM) {
	m.Add("vms", func(e metrics.Emitter) error {
		count := map[Path]int{}
		for _, vm := range read() {
			count[Path{vm.Path, vm.Reason}]++
		}
		for p, n := range count {
			e.Emit(vmPaths, float64(n), p.Path, p.Reason)
		}
		return nil
	})
}

// AddImports serves the imports of VRFs.
func (m *Metrics) AddImports(read func() ([]VRFImports, error)) {
	metrics.AddSlice(m.Registry, "imports", read, func(e metrics.Emitter, v VRFImports) {
		vni := v.VNI.String()
		e.Emit(vrfImports, float64(v.Imported), vni, "imported")
		e.Emit(vrfImports, float64(v.Filtered), vni, "filtered")
		e.Emit(vrfImports, float64(v.Waiting), vni, "waiting")
		for reason, n := range v.Refused {
			e.Emit(vrfRefused, float64(n), vni, reason)
		}
	})
}

// AddDrops serves the drop counters.
func (m *Metrics) AddDrops(read func() (status.Drops, error)) {
	m.Add("drops", func(e metrics.Emitter) error {
		d, err := read()
		if err != nil {
			return err
		}
		for _, c := range d.Counts {
			e.Emit(drops, float64(c.Packets), c.Reason)
		}
		e.Emit(unreadable, float64(d.Unreadable))
		return nil
	})
}

// AddTables serves the tables between the planes, and their maps. All numbers of the tables are
// known.
func (m *Metrics) AddTables(read func() []status.Table) {
	m.Add("tables", func(e metrics.Emitter) error {
		for _, t := range read() {
			e.Emit(tableRows, float64(*t.Wanted), t.Name, "wanted")
			e.Emit(tableRows, float64(t.Actual), t.Name, "actual")
			e.Emit(tableRows, float64(*t.Failed), t.Name, "failed")
			e.Emit(tableRows, float64(t.Lingering), t.Name, "lingering")
			e.Emit(tableHeld, metrics.Flag(t.Held != ""), t.Name)
			e.Emit(tableOps, float64(t.Operations.Applied), t.Name, "apply", "ok")
			e.Emit(tableOps, float64(t.Operations.ApplyErrors), t.Name, "apply", "error")
			e.Emit(tableOps, float64(t.Operations.Deleted), t.Name, "delete", "ok")
			e.Emit(tableOps, float64(t.Operations.DeleteErrors), t.Name, "delete", "error")
		}
		return nil
	})
	m.Add("maps", func(e metrics.Emitter) error {
		for _, t := range read() {
			for _, f := range t.Maps {
				e.Emit(mapRows, float64(f.Used), f.Name, t.Name)
				e.Emit(mapSize, float64(f.Size), f.Name, t.Name)
			}
		}
		return nil
	})
}

// AddDevices serves what devices did not deliver, and the paths that are narrow.
func (m *Metrics) AddDevices(read func() (Devices, error)) {
	m.Add("devices", func(e metrics.Emitter) error {
		d, err := read()
		if err != nil {
			return err
		}
		for _, c := range d.Drops {
			e.Emit(deviceDrops, float64(c.Packets), c.Device, c.Direction, c.Kind)
		}
		for vtep, mtu := range d.PathMTUs {
			e.Emit(pathMTU, float64(mtu), vtep.String())
		}
		return nil
	})
}

// AddDrain serves the stage of a drain, which is one of all.
func (m *Metrics) AddDrain(all []string, now func() string) {
	m.Add("drain", func(e metrics.Emitter) error {
		at := now()
		for _, stage := range all {
			e.Emit(drainStage, metrics.Flag(stage == at), stage)
		}
		return nil
	})
}

// AddBGP serves the speaker.
func (m *Metrics) AddBGP(read func() (status.BGP, error)) {
	m.Add("bgp", func(e metrics.Emitter) error {
		b, err := read()
		if err != nil {
			return err
		}
		for _, n := range b.Neighbors {
			a := n.Address.String()
			if n.Interface != "" {
				a = n.Interface
			}
			asn := strconv.FormatUint(uint64(n.ASN), 10)
			e.Emit(bgpUp, metrics.Flag(n.Up), a, asn)
			e.Emit(bgpFlaps, float64(n.Flaps), a, asn)
			if n.Up && !n.Since.IsZero() {
				e.Emit(bgpSince, float64(n.Since.Unix()), a, asn)
			}
			e.Emit(bgpLimited, metrics.Flag(n.State == status.NeighborPrefixLimit), a, asn)
			e.Emit(bgpRoutes, float64(n.Received), a, "received")
			e.Emit(bgpRoutes, float64(n.Accepted), a, "accepted")
			e.Emit(bgpRoutes, float64(n.Sent), a, "sent")
			e.Emit(bgpUnicast, float64(n.UnicastReceived), a)
			e.Emit(bgpIgnored, float64(n.IgnoredUpdates), a)
			for reason, routes := range n.Rejected {
				e.Emit(bgpRefused, float64(routes), a, reason)
			}
		}
		for reason, n := range b.Rejected {
			e.Emit(bgpRejected, float64(n), reason)
		}
		return nil
	})
}

// AddUnderlay serves the routes of the underlay.
func (m *Metrics) AddUnderlay(read func() ([]status.UnderlayRoute, error)) {
	m.Add("underlay", func(e metrics.Emitter) error {
		routes, err := read()
		if err != nil {
			return err
		}
		installed, hops, refused := 0, 0, map[string]int{}
		for _, r := range routes {
			switch r.State {
			case status.UnderlayInstalled:
				installed++
				hops += len(r.Hops.All())
			case status.UnderlayRefused:
				refused[r.Reason]++
			}
		}
		e.Emit(underlayRoutes, float64(installed), "installed")
		e.Emit(underlayRoutes, float64(hops), "hops")
		for reason, n := range refused {
			e.Emit(underlayRefused, float64(n), reason)
		}
		return nil
	})
}

// AddBFD serves BFD.
func (m *Metrics) AddBFD(read func() (BFD, error)) {
	m.Add("bfd", func(e metrics.Emitter) error {
		b, err := read()
		if err != nil || len(b.Sessions) == 0 {
			return err
		}
		for neighbor, s := range b.Sessions {
			a := neighbor.String()
			e.Emit(bfdUp, metrics.Flag(s.Up), a)
			e.Emit(bfdFlaps, float64(s.Flaps), a)
			e.Emit(bfdPackets, float64(s.PacketsIn), a, "in")
			e.Emit(bfdPackets, float64(s.PacketsOut), a, "out")
		}
		for reason, n := range b.Drops {
			e.Emit(bfdDrops, float64(n), reason)
		}
		return nil
	})
}

// AddDatabases serves the OVSDB sessions.
func (m *Metrics) AddDatabases(read func() ([]Database, error)) {
	metrics.AddSlice(m.Registry, "ovsdb", read, func(e metrics.Emitter, d Database) {
		e.Emit(dbConnected, metrics.Flag(d.Connected), d.Name)
		e.Emit(dbInSync, metrics.Flag(d.InSync), d.Name)
		e.Emit(dbRows, float64(d.Rows), d.Name)
		e.Emit(dbReconnects, float64(d.Sessions), d.Name)
	})
}
