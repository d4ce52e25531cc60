package main

import (
	"context"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/metrics/nodemetrics"
)

// addMetrics lets the collectors read what there is at the time of a scrape.
func (d *daemon) addMetrics() {
	d.metrics.AddStatus(d.reg)
	d.metrics.AddDatabases(func() ([]nodemetrics.Database, error) {
		var out []nodemetrics.Database
		for _, s := range d.follower.Status().Sessions {
			out = append(out, nodemetrics.Database{Name: conditionNames[s.Database], Connected: s.Connected, InSync: s.InSync, Rows: s.Rows, Sessions: uint64(s.Connects)})
		}
		return out, nil
	})
	d.metrics.AddPaths(fromNode(d, (*node).pathMetrics))
	d.metrics.AddTraffic(fromNode(d, (*node).trafficMetrics))
	d.metrics.AddLoadBalancing(func() (nodemetrics.LoadBalancing, error) {
		out := nodemetrics.LoadBalancing{TableSteps: d.sizes.Count()}
		all, err := d.balancers()
		if err != nil {
			return out, nil // the node is about to start
		}
		for _, b := range all {
			one, err := b.metrics(d.cfg.LoadBalancing.BackendMetrics)
			if err != nil {
				return out, err
			}
			out.VIPs, out.Backends = append(out.VIPs, one.VIPs...), append(out.Backends, one.Backends...)
			out.Evictions = append(out.Evictions, one.Evictions...)
		}
		return out, nil
	})
	d.metrics.AddMachines(func() ([]nodemetrics.Machines, error) { return d.machineMetrics(), nil })
	d.metrics.AddImports(fromNode(d, (*node).importMetrics))
	d.metrics.AddTables(d.tableMetrics)
	d.metrics.AddSteered(d.steered)
	d.metrics.AddMaps(func() ([]nodemetrics.Map, error) { return d.mapMetrics(), nil })
	d.metrics.AddDrain(drainStages(), func() string { return string(d.drain.Status(time.Now()).Stage) })
	d.metrics.AddDrops(func() (nodemetrics.Drops, error) {
		if len(d.planes()) == 0 {
			return nodemetrics.Drops{}, nil
		}
		counts, err := d.dropped()
		out := nodemetrics.Drops{ByReason: make(map[string]uint64, len(counts))}
		if n, err := d.running(); err == nil {
			out.Unreadable = n.samples.Unreadable()
		}
		if w := d.balancing.Running(); w != nil {
			out.Unreadable += w.Samples.Unreadable()
		}
		for reason, packets := range counts {
			out.ByReason[reason.String()] = packets
		}
		return out, err
	})
	d.metrics.AddDevices(func() (nodemetrics.Devices, error) {
		n, err := d.running()
		if err != nil {
			return nodemetrics.Devices{}, nil
		}
		return n.deviceMetrics()
	})
	d.metrics.AddUnderlay(func() (nodemetrics.Underlay, error) {
		n, err := d.running()
		if err != nil || !d.cfg.Underlay.Install.Enabled {
			return nodemetrics.Underlay{}, nil
		}
		return n.underlayMetrics()
	})
	d.metrics.AddBGP(func() (nodemetrics.BGP, error) {
		n, err := d.running()
		if err != nil {
			return nodemetrics.BGP{}, nil
		}
		return n.bgpMetrics()
	})
	d.metrics.AddBFD(func() (nodemetrics.BFD, error) {
		n, err := d.running()
		if err != nil {
			return nodemetrics.BFD{}, nil
		}
		return n.bfdMetrics(), nil
	})
}

// fromNode reads from the node; without one there is nothing to read.
func fromNode[T any](d *daemon, read func(*node) ([]T, error)) func() ([]T, error) {
	return func() ([]T, error) {
		n, err := d.running()
		if err != nil {
			return nil, nil
		}
		return read(n)
	}
}

func (n *node) trafficMetrics() ([]nodemetrics.VRFTraffic, error) {
	counters, err := n.dp.Reader().Counters()
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
func (d *daemon) mapMetrics() (out []nodemetrics.Map) {
	var fills []ebpf.Fill
	if n, err := d.running(); err == nil {
		fills = n.dp.Fills()
	}
	if w := d.balancing.Running(); w != nil {
		fills = append(fills, w.Dataplane.Fills()...)
	}
	for _, f := range fills {
		out = append(out, nodemetrics.Map{Name: f.Map, Table: f.Table, Used: f.Used, Size: f.Max})
	}
	return out
}

func neighborMetrics(b bgp.NeighborStatus) nodemetrics.Neighbor {
	up := established(b)
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

func (n *node) bgpMetrics() (nodemetrics.BGP, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s, err := n.speaker.Status(ctx)
	out := nodemetrics.BGP{Rejected: map[string]uint64{}}
	for _, b := range s.Neighbors {
		out.Neighbors = append(out.Neighbors, neighborMetrics(b))
		for reason, total := range b.RejectedTotal {
			out.Rejected[string(reason)] += total
		}
	}
	return out, err
}
