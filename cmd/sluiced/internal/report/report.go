// Package report answers what sluicectl and Prometheus ask: lists, status, differences, metrics.
// It owns nothing: what it tells is asked of the parts of the daemon.
package report

import (
	"log/slog"
	"time"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/drain"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/role"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/taps/balancing"
	steered "github.com/ovn-sluice/sluice/cmd/sluiced/internal/taps/metadata"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/translation"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// Config is what a report tells of the daemon itself.
type Config struct {
	File    *config.Config
	Version string
	Started time.Time
	Sizes   *tables.MaglevSizes
	Reg     *status.Registry
	Log     *slog.Logger
}

// Report answers. It is safe for concurrent use.
type Report struct {
	cfg     *config.Config
	version string
	started time.Time
	sizes   *tables.MaglevSizes
	reg     *status.Registry
	log     *slog.Logger

	role      *role.Role
	steps     *translation.Translation
	follower  *ovn.Follower
	metadata  *steered.Metadata
	balancing *balancing.Balancing
	drain     *drain.Drain
}

// New makes it.
func New(c Config, r *role.Role, steps *translation.Translation, follower *ovn.Follower, metadata *steered.Metadata, balancing *balancing.Balancing, drain *drain.Drain) *Report {
	return &Report{
		cfg: c.File, version: c.Version, started: c.Started, sizes: c.Sizes, reg: c.Reg, log: c.Log,
		role: r, steps: steps, follower: follower, metadata: metadata, balancing: balancing, drain: drain,
	}
}

// node is the gateway as answers see it.
type node struct {
	*gateway.Gateway
	cfg *config.Config
	reg *status.Registry
}

func (r *Report) node(g *gateway.Gateway) node { return node{g, r.cfg, r.reg} }

// running is the gateway, or why there is none.
func (r *Report) running() (node, error) {
	g, err := r.role.Running()
	return r.node(g), err
}

// ofNode answers of the gateway. A node without a role has an answer, too: that there is nothing.
// Whoever asks all nodes of a cloud has no errors to sort out.
func ofNode[T any](r *Report, none T, answer func(node) (T, error)) (T, error) {
	g, err := r.role.Present()
	switch {
	case err != nil:
		var nothing T
		return nothing, err
	case g == nil:
		return none, nil
	}
	return answer(r.node(g))
}
