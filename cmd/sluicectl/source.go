package main

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/output"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// errOffline is wrapped by answers that need a running sluiced.
var errOffline = errors.New("sluiced does not answer")

// source answers questions: the daemon, or the pinned maps when it is down.
type source interface {
	Status(ctx context.Context) (status.Status, error)
	VRFs(ctx context.Context) ([]status.VRF, error)
	VRF(ctx context.Context, vni intent.VNI) (status.VRF, error)
	Routes(ctx context.Context, vni intent.VNI) ([]status.Route, error)
	BGP(ctx context.Context) (status.BGP, error)
	BGPRoutes(ctx context.Context, vni intent.VNI) ([]status.BGPRoute, error)
	Underlay(ctx context.Context) (status.Underlay, error)
	Drops(ctx context.Context) (status.Drops, error)
	FollowDrops(ctx context.Context, each func(status.Drop) error) error
	Diff(ctx context.Context) (status.Diff, error)
	Explain(ctx context.Context, q status.Query) (status.Explanation, error)
	Trace(ctx context.Context, r status.TraceRequest) (status.Trace, error)
}

// source is the daemon if it answers, else the pinned maps. A note precedes an answer from the maps.
func (o *options) source(notes io.Writer) source {
	d := newDaemon(o)
	if d.answers() {
		return d
	}
	return &pinned{dir: o.bpffs, socket: o.socket, note: sync.OnceFunc(func() {
		output.Printf(notes, "no answer on %s; reading the pinned maps in %s\n", o.socket, o.bpffs)
	})}
}
