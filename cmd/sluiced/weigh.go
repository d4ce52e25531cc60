package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/admin"
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
	err = loadbalancer.ErrNoSuchBackend
	for _, row := range rows {
		list, wrong := loadbalancer.Weigh(loadbalancer.Row{Protocol: row.Protocol, VIPs: row.VIPs, Options: row.Options}, variables, backend, q.Weight)
		if errors.Is(wrong, loadbalancer.ErrNoSuchBackend) {
			continue // another protocol's row of the load balancer has it
		}
		if wrong == nil {
			wrong = d.follower.SetBalancerOption(ctx, row, loadbalancer.OptionWeights, list)
		}
		if wrong != nil {
			return admin.Nothing{}, fmt.Errorf("load balancer %s: %w", q.LoadBalancer, wrong)
		}
		d.log.Info("the weight of a backend was written", "load_balancer", q.LoadBalancer, "backend", q.Backend, "weights", list)
		err = nil
	}
	if err != nil {
		return admin.Nothing{}, fmt.Errorf("load balancer %s has no backend %s: %w", q.LoadBalancer, q.Backend, admin.ErrNotFound)
	}
	return admin.Nothing{}, nil
}
