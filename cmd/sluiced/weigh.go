package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// weigh writes the weight of a backend where all nodes read it.
func (d *daemon) weigh(ctx context.Context, q admin.WeighRequest) (admin.Nothing, error) {
	backend, err := loadbalancer.ParseBackend(q.Backend)
	if err != nil {
		return admin.Nothing{}, fmt.Errorf("%w: backend %w", admin.ErrBadRequest, err)
	}
	var rows []ovn.LoadBalancer
	var variables map[string]string
	d.follower.View(func(r *ovn.Rows) { rows, variables = r.BalancersNamed(q.LoadBalancer), r.TemplateVariables() })
	if len(rows) == 0 {
		return admin.Nothing{}, fmt.Errorf("load balancer %q: %w; 'sluicectl lb list' shows those of this node", q.LoadBalancer, admin.ErrNotFound)
	}
	list, err := weighings(rows, variables, backend, q.Weight)
	if err != nil {
		return admin.Nothing{}, fmt.Errorf("load balancer %s: %w", q.LoadBalancer, err)
	}
	for _, w := range list {
		if err := d.follower.SetBalancerOption(ctx, w.row, loadbalancer.OptionWeights, w.weights); err != nil {
			return admin.Nothing{}, fmt.Errorf("load balancer %s: %w", q.LoadBalancer, err)
		}
		d.log.Info("the weight of a backend was written", "load_balancer", q.LoadBalancer, "uuid", string(w.row.UUID), "backend", q.Backend, "weights", w.weights)
	}
	return admin.Nothing{}, nil
}

// weighing is a row, and options:sluice-weights that it gets.
type weighing struct {
	row     ovn.LoadBalancer
	weights string
}

// weighings are those of the rows of one name that have the backend: Octavia has a row for
// each protocol. Two of one protocol may be two tenants', whose addresses are the same.
func weighings(rows []ovn.LoadBalancer, variables map[string]string, backend netip.AddrPort, weight *uint16) (out []weighing, err error) {
	by := map[string]ovn.UUID{}
	for _, row := range rows {
		weights, err := loadbalancer.Weigh(loadbalancer.Row{Protocol: row.Protocol, VIPs: row.VIPs, Options: row.Options}, variables, backend, weight)
		switch other, twice := by[row.Protocol]; {
		case errors.Is(err, loadbalancer.ErrNoSuchBackend):
			continue
		case err != nil:
			return nil, err
		case twice:
			return nil, fmt.Errorf("%w: %s and %s have this name and backend %s; say which by its _uuid", admin.ErrBadRequest, other, row.UUID, backend)
		}
		by[row.Protocol] = row.UUID
		out = append(out, weighing{row, weights})
	}
	if len(out) == 0 {
		hint := ""
		if backend.Port() == 0 {
			hint = "; a backend is ADDRESS:PORT, IPv6 in brackets"
		}
		return nil, fmt.Errorf("it has no backend %s: %w%s", intent.FormatEndpoint(backend.Addr(), backend.Port()), admin.ErrNotFound, hint)
	}
	return out, nil
}
