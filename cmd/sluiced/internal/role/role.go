// Package role knows what the node is for, and starts and ends its gateway.
package role

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/plane"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/translation"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// Publish tells the other nodes of this one: ovn.Follower.Publish.
type Publish func(pairs map[string]string) error

// Role is that of the node. It is safe for concurrent use.
type Role struct {
	cfg     *config.Config
	version string
	steps   *translation.Translation
	sw      *ovs.Switch
	publish Publish
	reg     *status.Registry
	log     *slog.Logger

	facts     chan gateway.Facts // capacity 1: the latest
	host      chan ovn.HostAddresses
	hostLooks loop.Signal

	mu        sync.Mutex
	latest    gateway.Facts
	gateway   *gateway.Gateway // nil while the node has no role
	published bool             // Chassis_Private has been written, or is to be
}

// New makes it: nothing is known yet.
func New(cfg *config.Config, version string, steps *translation.Translation, sw *ovs.Switch, publish Publish, reg *status.Registry, log *slog.Logger) *Role {
	return &Role{
		cfg: cfg, version: version, steps: steps, sw: sw, publish: publish, reg: reg, log: log,
		facts: make(chan gateway.Facts, 1), host: make(chan ovn.HostAddresses), hostLooks: loop.NewSignal(),
	}
}

// Runner is a gateway that was started.
type Runner interface {
	// Run returns the facts for the next one.
	Run(ctx context.Context, facts <-chan gateway.Facts) (gateway.Facts, error)
}

// Start starts a gateway.
type Start func(ctx context.Context, facts gateway.Facts) (Runner, error)

// Run keeps a gateway running for the latest facts, until ctx ends. A start that
// fails is tried again. A gateway that fails later ends the process: its BGP server
// would go on beside that of the next one. Forwarding is pinned, and whoever runs
// sluiced starts it again.
func (r *Role) Run(ctx context.Context, start Start) error {
	var facts gateway.Facts
	r.reg.Await("dataplane", "waits for the component role, which says what the node is for")
	wait := func() {
		next, cancel := context.WithTimeout(ctx, plane.Retry)
		defer cancel()
		select {
		case <-next.Done():
		case facts = <-r.facts:
		}
	}
	for ctx.Err() == nil {
		select {
		case facts = <-r.facts: // while the last gateway ended, or failed to start
		default:
		}
		if !facts.Gateway || facts.SystemID == "" {
			if facts.SystemID != "" {
				r.retire(ctx)
			}
			wait()
			continue
		}
		r.reg.Await("dataplane", fmt.Sprintf("maps and programs are being loaded for chassis %q", facts.SystemID))
		g, err := start(ctx, facts)
		if err == nil {
			if facts, err = g.Run(ctx, r.facts); err != nil {
				return fmt.Errorf("gateway node: %w", err)
			}
			continue
		}
		if ctx.Err() != nil {
			break
		}
		r.reg.SetCondition("dataplane", false, reason.StartFailed, plane.StartFailed(err))
		wait()
	}
	return nil
}

// retire removes what this node programmed while it was a gateway node: once OVN
// says for sure that it is none.
func (r *Role) retire(ctx context.Context) {
	if !r.steps.OVNInSync() {
		r.reg.Await("dataplane", "waits for the components sb and vswitchd; then what an earlier gateway has left is removed")
		return
	}
	things, err := owned.List(ctx, r.sw, r.cfg.Dataplane.BPFFS)
	errs := []error{err}
	for _, t := range things {
		r.log.Info("no gateway port needs this node; removing", "object", t.What)
		errs = append(errs, t.Remove(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		r.reg.SetCondition("dataplane", false, reason.Leftovers, err.Error())
		return
	}
	r.reg.SetCondition("dataplane", true, reason.Idle, "no gateway port needs this node")
	r.reg.SetCondition("bgp", true, reason.Idle, "no gateway port needs this node")
}

// AtWork takes the gateway that answers are of; nil: none is at work.
func (r *Role) AtWork(g *gateway.Gateway) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gateway = g
	if r.published {
		_ = r.publishLocked() // the keys are ours: nothing can be wrong with them
	}
	if g != nil {
		r.hostLooks.Send()
	}
}

// Publish tells the other nodes, by way of OVN, who this one is and where the
// fabric reaches it while it is a gateway; from then on whenever that changes.
func (r *Role) Publish() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.publishLocked()
	r.published = err == nil
	return err
}

func (r *Role) publishLocked() error {
	pairs := map[string]string{ovn.PublishPrefix + "version": r.version}
	if r.gateway != nil {
		id := r.gateway.Identity()
		for k, v := range ovn.Pairs(intent.FabricAddress{VTEP: id.VTEP, RouterMAC: id.RouterMAC}) {
			pairs[k] = v
		}
	}
	return r.publish(pairs)
}

// Calm tells whether the start is over for all that others wait for.
func (r *Role) Calm() bool {
	if !r.steps.AllInSync() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gateway == nil {
		return !r.latest.Gateway
	}
	return r.gateway.Calm()
}
