package metrics

import (
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/ovn-sluice/sluice/pkg/status"
)

// Metrics is the registry with Sluice's own metrics, Go's and the process's.
type Metrics struct {
	reg      *prometheus.Registry
	pass     prometheus.Histogram
	announce prometheus.Histogram
	metadata prometheus.Histogram
	failed   func(collector string, err error)
}

// New makes sluiced's registry. failed is told when a source cannot be read and, with
// nil, when it can be read again.
func New(version string, failed func(collector string, err error)) *Metrics {
	m := &Metrics{
		pass: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: passSeconds.Name, Help: passSeconds.Help, Buckets: prometheus.ExponentialBuckets(0.0001, 4, 9)}),
		announce: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: announceDelay.Name, Help: announceDelay.Help, Buckets: prometheus.ExponentialBuckets(0.001, 2, 14)}),
	}
	m.begin(version, failed, m.pass, m.announce)
	return m
}

// begin registers what every process has, and its histograms.
func (m *Metrics) begin(version string, failed func(collector string, err error), own ...prometheus.Collector) {
	m.reg, m.failed = prometheus.NewRegistry(), failed
	m.reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.reg.MustRegister(own...)
	m.add("build", func(e emitter) error {
		e.emit(buildInfo, 1, version, runtime.Version())
		return nil
	})
}

// Gatherer is what the HTTP listener serves.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.reg }

// ObservePass counts one pass of the reconciler.
func (m *Metrics) ObservePass(d time.Duration) { m.pass.Observe(d.Seconds()) }

// ObserveAnnounceDelay counts one announcement.
func (m *Metrics) ObserveAnnounceDelay(d time.Duration) { m.announce.Observe(d.Seconds()) }

// AddStatus serves the objects and components of a registry.
func (m *Metrics) AddStatus(r *status.Registry) {
	m.add("status", func(e emitter) error {
		for _, c := range r.Conditions() {
			e.emit(componentReady, flag(c.Ready), c.Name)
		}
		for _, c := range r.Counts() {
			e.emit(objects, float64(c.Count), c.Kind, string(c.State), c.Reason)
		}
		for c, n := range r.Errors() {
			e.emit(objectErrors, float64(n), c.Kind, c.Reason)
		}
		return nil
	})
}

// AddTraffic serves the counters of VRFs.
func (m *Metrics) AddTraffic(read func() ([]VRFTraffic, error)) {
	addSlice(m, "traffic", read, func(e emitter, v VRFTraffic) {
		vni := v.VNI.String()
		e.emit(vrfPackets, float64(v.ToFabricPackets), vni, "to-fabric")
		e.emit(vrfPackets, float64(v.FromFabricPackets), vni, "from-fabric")
		e.emit(vrfBytes, float64(v.ToFabricBytes), vni, "to-fabric")
		e.emit(vrfBytes, float64(v.FromFabricBytes), vni, "from-fabric")
	})
}

// AddLoadBalancing serves the counters of VIPs and backends.
func (m *Metrics) AddLoadBalancing(read func() (LoadBalancing, error)) {
	m.add("load-balancing", func(e emitter) error {
		l, err := read()
		if err != nil {
			return err
		}
		e.emit(vipSteps, float64(l.TableSteps))
		for _, ev := range l.Evictions {
			e.emit(evicting, flag(ev.Evicting), ev.Table)
			e.emit(evictedAnswers, float64(ev.Translated), ev.Table)
		}
		for _, v := range l.VIPs {
			labels := []string{v.VNI.String(), v.VIP, v.Protocol}
			e.balanced(vipPackets, vipBytes, vipFlows, v.Balanced, labels)
			e.emit(vipKnown, float64(v.Known), labels...)
			e.emit(vipTable, float64(v.TableHash>>11), labels...)
			e.emit(vipUnrecorded, float64(v.Unrecorded), labels...)
			e.emit(vipDrops, float64(v.Drops), labels...)
		}
		for _, b := range l.Backends {
			e.balanced(backendPackets, backendBytes, backendFlows, b.Balanced, []string{b.VNI.String(), b.Backend, b.Protocol})
		}
		return nil
	})
}

func (e emitter) balanced(packets, bytes, flows *Metric, b Balanced, labels []string) {
	to, from := append(labels[:len(labels):len(labels)], "to-backends"), append(labels[:len(labels):len(labels)], "to-clients")
	e.emit(packets, float64(b.ToBackendsPackets), to...)
	e.emit(packets, float64(b.ToClientsPackets), from...)
	e.emit(bytes, float64(b.ToBackendsBytes), to...)
	e.emit(bytes, float64(b.ToClientsBytes), from...)
	e.emit(flows, float64(b.Flows), labels...)
}

// AddPaths serves the numbers of VRFs by their path.
func (m *Metrics) AddPaths(read func() ([]Path, error)) {
	addSlice(m, "paths", read, func(e emitter, p Path) { e.emit(vrfPaths, float64(p.VRFs), p.Path, p.Reason) })
}

// AddMachines serves the numbers of machines by what balances their flows.
func (m *Metrics) AddMachines(read func() ([]Machines, error)) {
	addSlice(m, "machines", read, func(e emitter, p Machines) { e.emit(machinePaths, float64(p.Count), p.Path, p.Reason) })
}

// AddImports serves the imports of VRFs.
func (m *Metrics) AddImports(read func() ([]VRFImports, error)) {
	addSlice(m, "imports", read, func(e emitter, v VRFImports) {
		vni := v.VNI.String()
		e.emit(vrfImports, float64(v.Imported), vni, "imported")
		e.emit(vrfImports, float64(v.Filtered), vni, "filtered")
		e.emit(vrfImports, float64(v.Waiting), vni, "waiting")
		for reason, n := range v.Refused {
			e.emit(vrfRefused, float64(n), vni, reason)
		}
	})
}

// AddDrops serves the drop counters.
func (m *Metrics) AddDrops(read func() (Drops, error)) {
	m.add("drops", func(e emitter) error {
		d, err := read()
		if err != nil {
			return err
		}
		for reason, n := range d.ByReason {
			e.emit(drops, float64(n), reason)
		}
		e.emit(unreadable, float64(d.Unreadable))
		return nil
	})
}

// AddTables serves the tables between the planes.
func (m *Metrics) AddTables(read func() ([]Table, error)) {
	addSlice(m, "tables", read, func(e emitter, t Table) {
		e.emit(tableRows, float64(t.Wanted), t.Name, "wanted")
		e.emit(tableRows, float64(t.Actual), t.Name, "actual")
		e.emit(tableRows, float64(t.Failed), t.Name, "failed")
		e.emit(tableRows, float64(t.Lingering), t.Name, "lingering")
		e.emit(tableHeld, flag(t.Held), t.Name)
		e.emit(tableOps, float64(t.Applied), t.Name, "apply", "ok")
		e.emit(tableOps, float64(t.ApplyErrors), t.Name, "apply", "error")
		e.emit(tableOps, float64(t.Deleted), t.Name, "delete", "ok")
		e.emit(tableOps, float64(t.DeleteErrors), t.Name, "delete", "error")
	})
}

// AddDevices serves what devices did not deliver, and the paths that are narrow.
func (m *Metrics) AddDevices(read func() (Devices, error)) {
	m.add("devices", func(e emitter) error {
		d, err := read()
		if err != nil {
			return err
		}
		for _, c := range d.Drops {
			e.emit(deviceDrops, float64(c.Packets), c.Device, c.Direction, c.Kind)
		}
		for vtep, mtu := range d.PathMTUs {
			e.emit(pathMTU, float64(mtu), vtep.String())
		}
		return nil
	})
}

// AddDrain serves the stage of a drain, which is one of all.
func (m *Metrics) AddDrain(all []string, now func() string) {
	m.add("drain", func(e emitter) error {
		at := now()
		for _, stage := range all {
			e.emit(drainStage, flag(stage == at), stage)
		}
		return nil
	})
}

// AddMaps serves the maps of the data plane.
func (m *Metrics) AddMaps(read func() ([]Map, error)) {
	addSlice(m, "maps", read, func(e emitter, f Map) {
		e.emit(mapRows, float64(f.Used), f.Name, f.Table)
		e.emit(mapSize, float64(f.Size), f.Name, f.Table)
	})
}

// AddBGP serves the speaker.
func (m *Metrics) AddBGP(read func() (BGP, error)) {
	m.add("bgp", func(e emitter) error {
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
			e.emit(bgpUp, flag(n.Up), a, asn)
			e.emit(bgpFlaps, float64(n.Flaps), a, asn)
			if !n.Established.IsZero() {
				e.emit(bgpSince, float64(n.Established.Unix()), a, asn)
			}
			e.emit(bgpLimited, flag(n.PrefixLimit), a, asn)
			e.emit(bgpRoutes, float64(n.Received), a, "received")
			e.emit(bgpRoutes, float64(n.Accepted), a, "accepted")
			e.emit(bgpRoutes, float64(n.Sent), a, "sent")
			e.emit(bgpUnicast, float64(n.UnicastReceived), a)
			e.emit(bgpIgnored, float64(n.Ignored), a)
		}
		for reason, n := range b.Rejected {
			e.emit(bgpRejected, float64(n), reason)
		}
		return nil
	})
}

// AddUnderlay serves the routes of the underlay.
func (m *Metrics) AddUnderlay(read func() (Underlay, error)) {
	m.add("underlay", func(e emitter) error {
		u, err := read()
		if err != nil {
			return err
		}
		e.emit(underlayRoutes, float64(u.Installed), "installed")
		e.emit(underlayRoutes, float64(u.Hops), "hops")
		for reason, n := range u.Refused {
			e.emit(underlayRefused, float64(n), reason)
		}
		return nil
	})
}

// AddBFD serves BFD.
func (m *Metrics) AddBFD(read func() (BFD, error)) {
	m.add("bfd", func(e emitter) error {
		b, err := read()
		if err != nil || len(b.Sessions) == 0 {
			return err
		}
		for _, s := range b.Sessions {
			a := s.Neighbor.String()
			e.emit(bfdUp, flag(s.Up), a)
			e.emit(bfdFlaps, float64(s.Flaps), a)
			e.emit(bfdPackets, float64(s.In), a, "in")
			e.emit(bfdPackets, float64(s.Out), a, "out")
		}
		for reason, n := range b.Drops {
			e.emit(bfdDrops, float64(n), reason)
		}
		return nil
	})
}

// AddDatabases serves the OVSDB sessions.
func (m *Metrics) AddDatabases(read func() ([]Database, error)) {
	addSlice(m, "ovsdb", read, func(e emitter, d Database) {
		e.emit(dbConnected, flag(d.Connected), d.Name)
		e.emit(dbInSync, flag(d.InSync), d.Name)
		e.emit(dbRows, float64(d.Rows), d.Name)
		e.emit(dbReconnects, float64(d.Sessions), d.Name)
	})
}

func addSlice[T any](m *Metrics, name string, read func() ([]T, error), each func(emitter, T)) {
	m.add(name, func(e emitter) error {
		rows, err := read()
		for _, r := range rows {
			each(e, r)
		}
		return err
	})
}

func (m *Metrics) add(name string, read func(emitter) error) {
	m.reg.MustRegister(&source{name: name, read: read, failed: m.failed})
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// source is one collector. It describes nothing in advance, since which labels
// there are is only known when it is read.
type source struct {
	name   string
	read   func(emitter) error
	failed func(string, error)

	mu     sync.Mutex
	broken bool
}

func (s *source) Describe(chan<- *prometheus.Desc) {}

func (s *source) Collect(ch chan<- prometheus.Metric) {
	err := s.read(emitter{ch})
	emitter{ch}.emit(success, flag(err == nil), s.name)
	s.mu.Lock()
	changed := s.broken != (err != nil)
	s.broken = err != nil
	s.mu.Unlock()
	if changed {
		s.failed(s.name, err)
	}
}

type emitter struct{ ch chan<- prometheus.Metric }

func (e emitter) emit(m *Metric, v float64, labels ...string) {
	t := prometheus.GaugeValue
	if m.Type == Counter {
		t = prometheus.CounterValue
	}
	e.ch <- prometheus.MustNewConstMetric(m.desc, t, v, labels...)
}
