package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	pins "github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// pinned answers from the pinned maps what they can answer.
type pinned struct {
	dir    string
	socket string // of the sluiced that does not answer
	// note says once that the maps are read.
	note func()
}

var _ source = (*pinned)(nil)

// with opens the maps for one question.
func with[T any](p *pinned, read func(*ebpf.Reader) (T, error)) (T, error) {
	var none T
	r, err := ebpf.OpenReader(p.dir, ebpf.Fabric)
	if errors.Is(err, ebpf.ErrNotLoaded) {
		return none, fmt.Errorf("%w on %s, and nothing is pinned in %s: start sluiced", errOffline, p.socket, p.dir)
	}
	if err != nil {
		return none, err
	}
	defer func() { _ = r.Close() }()
	p.note()
	return read(r)
}

func (p *pinned) Status(ctx context.Context) (status.Status, error) {
	vrfs, err := p.VRFs(ctx)
	if err != nil {
		return status.Status{}, err
	}
	routes, err := p.Routes(ctx, 0)
	return status.Status{Version: version, Offline: true,
		Tables: []status.Table{{Name: "vrfs", Actual: len(vrfs)}, {Name: "routes", Actual: len(routes)}}}, err
}

func (p *pinned) VRFs(ctx context.Context) ([]status.VRF, error) {
	routes, err := p.Routes(ctx, 0)
	if err != nil {
		return nil, err
	}
	return with(p, func(r *ebpf.Reader) ([]status.VRF, error) {
		counters, err := r.Counters()
		out := []status.VRF{}
		for _, c := range counters {
			if c.VNI == 0 {
				continue
			}
			v := status.VRF{VNI: c.VNI, State: status.Unknown, Path: c.Path.String(), ToFabric: c.ToFabric.Status(), FromFabric: c.FromFabric.Status()}
			for _, route := range routes {
				switch {
				case route.VNI != c.VNI:
				case route.Kind == intent.RouteLocal.String():
					v.Local++
				case route.Kind == intent.RouteRemote.String():
					v.Remote++
				}
			}
			out = append(out, v)
		}
		return out, err
	})
}

func (p *pinned) VRF(ctx context.Context, vni intent.VNI) (status.VRF, error) {
	vrfs, err := p.VRFs(ctx)
	if err != nil {
		return status.VRF{}, err
	}
	i := slices.IndexFunc(vrfs, func(v status.VRF) bool { return v.VNI == vni })
	if i < 0 {
		return status.VRF{}, notPinned(vni)
	}
	v := vrfs[i]
	v.Routes, err = p.Routes(ctx, vni)
	return v, err
}

func (p *pinned) hasVRF(vni intent.VNI) error {
	vrfs, err := ebpf.PinnedVRFs(p.dir)
	if _, ok := vrfs[vni]; err == nil && !ok {
		return notPinned(vni)
	}
	return err
}

func notPinned(vni intent.VNI) error { return fmt.Errorf("VRF %s is not in the pinned maps", vni) }

func (p *pinned) Routes(_ context.Context, vni intent.VNI) ([]status.Route, error) {
	return with(p, func(r *ebpf.Reader) ([]status.Route, error) {
		rows, err := r.Routes()
		if err != nil {
			return nil, err
		}
		return pinnedRoutes(rows, vni, p.hasVRF)
	})
}

// pinnedRoutes are the rows of a VRF that there is, or all for VNI 0.
func pinnedRoutes(rows map[intent.RouteKey]ebpf.RouteRow, vni intent.VNI, has func(intent.VNI) error) ([]status.Route, error) {
	out := []status.Route{}
	for k, row := range rows {
		if vni == 0 || k.VNI == vni {
			out = append(out, status.Route{VNI: k.VNI, Prefix: k.Prefix, Kind: row.Kind.String(), Gateway: row.Gateway, NextHops: row.NextHops.All(), Programmed: true, State: status.Unknown})
		}
	}
	if vni != 0 && len(out) == 0 {
		return out, has(vni)
	}
	slices.SortFunc(out, status.Route.Compare)
	return out, nil
}

func (p *pinned) Drops(context.Context) (status.Drops, error) {
	out, err := with(p, (*ebpf.Reader).DropStatus)
	counts, metadataErr := metadataDrops(p.dir)
	switch {
	case len(counts) > 0 && errors.Is(err, errOffline): // no gateway
		out, err = status.Drops{}, nil
	case err == nil:
		err = metadataErr
	}
	out.Counts = append(out.Counts, counts...)
	return out, err
}

// metadataDrops are those that the programs on taps count; none where they are not.
func metadataDrops(dir string) ([]status.DropCount, error) {
	r, err := taps.Inspect(owned.MetadataPins(dir), pins.HookAuto)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	return r.DropStatus()
}

func (p *pinned) FollowDrops(ctx context.Context, each func(status.Drop) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error
	_, err := with(p, func(r *ebpf.Reader) (struct{}, error) {
		return struct{}{}, r.Samples(ctx, func(s ebpf.Sample) {
			if failed = each(s.Status()); failed != nil {
				cancel()
			}
		}, func(error) {}) // another version's: the next one may be readable
	})
	if errors.Is(err, context.Canceled) {
		return failed
	}
	return err
}

// offline is the error of a question that the maps cannot answer.
func (p *pinned) offline(what string) error {
	return fmt.Errorf("%w on %s, and only sluiced knows %s", errOffline, p.socket, what)
}

func (p *pinned) BGP(context.Context) (status.BGP, error) { return status.BGP{}, p.offline("BGP") }

func (p *pinned) Underlay(context.Context) (status.Underlay, error) {
	return status.Underlay{}, p.offline("the underlay")
}

func (p *pinned) BGPRoutes(context.Context, intent.VNI) ([]status.BGPRoute, error) {
	return nil, p.offline("BGP")
}

func (p *pinned) Diff(context.Context) (status.Diff, error) {
	return status.Diff{}, fmt.Errorf("%w on %s; 'sluiced --dry-run' tells what it would change", errOffline, p.socket)
}

func (p *pinned) Explain(context.Context, status.Query) (status.Explanation, error) {
	return status.Explanation{}, p.offline("what OVN asks for")
}

func (p *pinned) Trace(context.Context, status.TraceRequest) (status.Trace, error) {
	return status.Trace{}, p.offline("which device a packet comes in by")
}
