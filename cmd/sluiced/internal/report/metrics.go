package report

import (
	"context"
	"time"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/drain"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/health"
	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/metrics/nodemetrics"
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
	m.AddMachines(func() ([]nodemetrics.Machines, error) { return r.machineMetrics(), nil })
	m.AddImports(fromNode(r, node.importMetrics))
	m.AddTables(r.tableMetrics)
	m.AddSteered(r.steered)
	m.AddMaps(func() ([]nodemetrics.Map, error) { return r.mapMetrics(), nil })
	m.AddDrain(drain.Stages(), func() string { return string(r.drain.Stage()) })
	m.AddDrops(func() (nodemetrics.Drops, error) {
		if len(r.planes()) == 0 {
			return nodemetrics.Drops{}, nil
		}
		counts, err := r.dropped()
		out := nodemetrics.Drops{ByReason: make(map[string]uint64, len(counts))}
		if n, err := r.running(); err == nil {
			out.Unreadable = n.Samples().Unreadable()
		}
		if w := r.balancing.Running(); w != nil {
			out.Unreadable += w.Samples.Unreadable()
		}
		for reason, packets := range counts {
			out.ByReason[reason.String()] = packets
		}
		return out, err
	})
	m.AddDevices(func() (nodemetrics.Devices, error) {
		n, err := r.running()
		if err != nil {
			return nodemetrics.Devices{}, nil
		}
		return n.deviceMetrics()
	})
	m.AddUnderlay(func() (nodemetrics.Underlay, error) {
		n, err := r.running()
		if err != nil || !r.cfg.Underlay.Install.Enabled {
			return nodemetrics.Underlay{}, nil
		}
		return n.underlayMetrics()
	})
	m.AddBGP(func() (nodemetrics.BGP, error) {
		n, err := r.running()
		if err != nil {
			return nodemetrics.BGP{}, nil
		}
		return n.bgpMetrics()
	})
	m.AddBFD(func() (nodemetrics.BFD, error) {
		n, err := r.running()
		if err != nil {
			return nodemetrics.BFD{}, nil
		}
		return n.bfdMetrics(), nil
	})
}

// fromNode reads from the node; without one there is nothing to read.
func fromNode[T any](r *Report, read func(node) ([]T, error)) func() ([]T, error) {
	return func() ([]T, error) {
		n, err := r.running()
		if err != nil {
			return nil, nil
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
		out = append(out, nodemetrics.VRFTraffic{VNI: c.VNI, ToFabricPackets: c.ToFabric.Packets, ToFabricBytes: c.ToFabric.Bytes,
			FromFabricPackets: c.FromFabric.Packets, FromFabricBytes: c.FromFabric.Bytes})
	}
	return out, err
}

// mapMetrics are the maps of all planes that run.
func (r *Report) mapMetrics() (out []nodemetrics.Map) {
	var fills []ebpf.Fill
	if n, err := r.running(); err == nil {
		fills = n.Dataplane().Fills()
	}
	if w := r.balancing.Running(); w != nil {
		fills = append(fills, w.Dataplane.Fills()...)
	}
	for _, f := range fills {
		out = append(out, nodemetrics.Map{Name: f.Map, Table: f.Table, Used: f.Used, Size: f.Max})
	}
	return out
}

func neighborMetrics(b bgp.NeighborStatus) nodemetrics.Neighbor {
	up := gateway.Established(b)
	var since time.Time
	if up {
		since = b.Since
	}
	return nodemetrics.Neighbor{
		Flaps: b.Flaps, Established: since, Up: up, Address: b.Address, Interface: b.Interface, UnicastReceived: b.UnicastReceived, ASN: b.ASN,
		PrefixLimit: b.State == bgp.StatePrefixLimit, Ignored: b.Ignored,
		Received: b.Received, Accepted: accepted(b), Sent: b.Sent,
	}
}

func (n node) bgpMetrics() (nodemetrics.BGP, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s, err := n.Speaker().Status(ctx)
	out := nodemetrics.BGP{Rejected: map[string]uint64{}}
	for _, b := range s.Neighbors {
		out.Neighbors = append(out.Neighbors, neighborMetrics(b))
		for reason, total := range b.RejectedTotal {
			out.Rejected[string(reason)] += total
		}
	}
	return out, err
}

// pathMetrics counts the VRFs by the path that forwards them, and why.
func (n node) pathMetrics() ([]nodemetrics.Path, error) {
	wanted, _ := tables.Of(n.Tables(), intent.VRFs).Rows()
	count := map[nodemetrics.Path]int{}
	for vni := range wanted {
		count[nodemetrics.Path{Path: n.Carrier(vni).String(), Reason: n.Choice(vni).Reason}]++
	}
	var out []nodemetrics.Path
	for p, vrfs := range count {
		p.VRFs = vrfs
		out = append(out, p)
	}
	return out, nil
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
