package gateway

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/controlplane/evpn"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/beat"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/status"
)

const (
	// overlapReports is the source of what watchOverlaps reports.
	overlapReports = "overlaps"
	// overlapAge is how long a route into a subnet of this node has to be there before Southbound is
	// asked whose it is: as a gateway port moves, the node that it leaves still has its own.
	overlapAge = 5 * time.Second
	// overlapPause is between two questions: the server looks at every port for one. overlapAgain is
	// when a VNI is asked for again.
	overlapPause = 10 * time.Second
	overlapAgain = 10 * time.Minute
)

// overlaps are the VNIs into whose subnets here another node announces routes, with the gateway
// ports that Southbound has of them.
type overlaps struct {
	ask  func(context.Context, intent.VNI) ([]ovn.Gateway, error)
	vnis map[intent.VNI]*overlap
	last time.Time // a question
}

type overlap struct {
	next     time.Time // when to ask
	gateways []ovn.Gateway
}

// look takes the VNIs as they are now, and asks for the one that is due for longest. It tells
// whether there is an answer.
func (o *overlaps) look(ctx context.Context, now time.Time, vnis []intent.VNI) (answered bool, err error) {
	for vni := range o.vnis {
		if !slices.Contains(vnis, vni) {
			delete(o.vnis, vni)
		}
	}
	var which intent.VNI
	var due *overlap
	for _, vni := range vnis {
		v := o.vnis[vni]
		if v == nil {
			v = &overlap{next: now.Add(overlapAge)}
			o.vnis[vni] = v
		}
		if !v.next.After(now) && (due == nil || v.next.Before(due.next)) {
			which, due = vni, v
		}
	}
	if due == nil || now.Sub(o.last) < overlapPause {
		return false, nil
	}
	o.last = now
	gateways, err := o.ask(ctx, which)
	if err != nil {
		due.next = now.Add(overlapAge)
		if errors.Is(err, context.DeadlineExceeded) { // a server that is busy with the question is left alone
			due.next = now.Add(overlapAgain)
		}
		return false, err
	}
	due.next, due.gateways = now.Add(overlapAgain), gateways
	return true, nil
}

// report names the routers on other chassis.
func (o *overlaps) report(exposed []evpn.Exposed, chassis string) (out []status.Object) {
	for vni, v := range o.vnis {
		out = append(out, evpn.OverlapsElsewhere(vni, exposed, v.gateways, chassis)...)
	}
	return out
}

// watchOverlaps reports subnets of this node's routers that another router of the cloud has in
// the same VNI, on another node. BGP shows that there is one, Southbound which.
func (g *Gateway) watchOverlaps(ctx context.Context) error {
	var wait time.Duration
	all := overlaps{vnis: map[intent.VNI]*overlap{}, ask: func(ctx context.Context, vni intent.VNI) ([]ovn.Gateway, error) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return g.rows.GatewaysWith(ctx, evpn.KeyVNI, vni.String())
	}}
	var exposed []evpn.Exposed
	var vnis []intent.VNI
	var progress bgp.Progress // of imports: a change of route targets, or of a path, imports routes that were received before
	var steps uint64
	for first := true; loop.Sleep(ctx, wait); first = false {
		begin := time.Now()
		now, claims := g.speaker.Progress(), g.steps.Steps()
		changed := first || now != progress || claims != steps
		progress, steps = now, claims
		if changed {
			exposed = g.steps.Exposed()
			subnets := map[intent.VNI][]netip.Prefix{}
			for _, e := range exposed {
				subnets[e.VNI] = append(subnets[e.VNI], e.Prefix)
			}
			vnis = g.speaker.Overlaps(subnets)
		}
		took := time.Since(begin)
		answered, err := all.look(ctx, begin, vnis)
		if err != nil {
			g.log.Debug("the gateway ports of other nodes cannot be read", "error", err)
		}
		if changed || answered {
			begin = time.Now()
			g.reg.Reporter(overlapReports).Replace(all.report(exposed, g.id.SystemID))
			took += time.Since(begin) // a VNI may have many routers
		}
		wait = max(beat.Until(leakInterval), leakShare*took)
	}
	return nil
}
