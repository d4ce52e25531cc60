package report

import (
	"context"
	"time"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/drain"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/health"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/metrics/nodemetrics"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// AddMetrics lets the collectors read what there is at the time of a scrape.
func (r *Report) AddMetrics(m *nodemetrics.Metrics) {
	m.AddStatus(r.reg)
	m.AddDatabases(func() ([]nodemetrics.Database, error) {
		var out []nodemetrics.Database
		for _, s := range r.follower.Status().Sessions {
			out = append(out, nodemetrics.Database{Name: health.ConditionNames[s.Database], Connected: s.Connected, InSync: s.InSync, Rows: s.Rows, Sessions: uint64(s.Connects)})
		}
		return out, nil
	})
	m.AddPaths(fromNode(r, node.pathMetrics))
	m.AddTraffic(fromNode(r, node.trafficMetrics))
	m.AddLoadBalancing(func() (nodemetrics.LoadBalancing, error) {
		out := nodemetrics.LoadBalancing{TableSteps: r.sizes.Count()}
		all, err := r.balancers()
		if err != nil {
			return out, nil // the node is about to start
		}
		for _, b := range all {
			one, err := b.metrics(r.cfg.LoadBalancing.BackendMetrics)
			if err != nil {
				return out, err
			}
			out.VIPs, out.Backends = append(out.VIPs, one.VIPs...), append(out.Backends, one.Backends...)
			out.Evictions = append(out.Evictions, one.Evictions...)
		}
		return out, nil
	})
	m.AddVMs(r.VMs)
	m.AddImports(fromNode(r, node.importMetrics))
	m.AddTables(r.tables)
	m.AddSteered(r.steered)
	m.AddDrain(drain.Stages(), func() string { return string(r.drain.Stage()) })
	m.AddDrops(r.planeDrops)
	m.AddDevices(fromNode(r, node.deviceMetrics))
	m.AddUnderlay(fromNode(r, node.underlayRoutes))
	m.AddBGP(fromNode(r, func(n node) (status.BGP, error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return n.bgp(ctx)
	}))
	m.AddBFD(fromNode(r, func(n node) (nodemetrics.BFD, error) { return n.bfd(), nil }))
}

// fromNode reads from the node; without one there is nothing to read.
func fromNode[T any](r *Report, read func(node) (T, error)) func() (T, error) {
	return func() (T, error) {
		n, err := r.running()
		if err != nil {
			var nothing T
			return nothing, nil
		}
		return read(n)
	}
}

func (n node) trafficMetrics() ([]nodemetrics.VRFTraffic, error) {
	counters, err := n.Dataplane().Reader().Counters()
	var out []nodemetrics.VRFTraffic
	for _, c := range counters {
		if c.VNI == 0 {
			continue
		}
		out = append(out, nodemetrics.VRFTraffic{VNI: c.VNI, ToFabric: c.ToFabric.Status(), FromFabric: c.FromFabric.Status()})
	}
	return out, err
}

// pathMetrics counts the VRFs by the path that forwards them, and why.
func (n node) pathMetrics() (map[nodemetrics.Path]int, error) {
	wanted, _ := tables.Of(n.Tables(), intent.VRFs).Rows()
	count := map[nodemetrics.Path]int{}
	for vni := range wanted {
		count[nodemetrics.Path{Path: n.Carrier(vni).String(), Reason: n.Choice(vni).Reason}]++
	}
	return count, nil
}

// deviceMetrics are read when somebody asks.
func (n node) deviceMetrics() (nodemetrics.Devices, error) {
	counts, err := n.NextHops().Drops()
	out := nodemetrics.Devices{PathMTUs: n.NextHops().PathMTUs()}
	for _, c := range counts {
		out.Drops = append(out.Drops, nodemetrics.DeviceDrops{Device: c.Link, Direction: c.Direction, Kind: c.Kind, Packets: c.Packets})
	}
	return out, err
}
