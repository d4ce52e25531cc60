package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/admin/nodeapi"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

// weigh writes the weight of a backend where all nodes read it.
func (d *daemon) weigh(ctx context.Context, q nodeapi.WeighRequest) (nodeapi.Weighed, error) {
	backend, err := loadbalancer.ParseBackend(q.Backend)
	if err != nil {
		return nodeapi.Weighed{}, fmt.Errorf("%w: backend %w", admin.ErrBadRequest, err)
	}
	for {
		var rows []ovn.LoadBalancer
		var variables map[string]string
		d.follower.View(func(r *ovn.Rows) { rows, variables = r.BalancersNamed(q.LoadBalancer), r.TemplateVariables() })
		if len(rows) == 0 {
			return nodeapi.Weighed{}, fmt.Errorf("load balancer %q: %w; 'sluicectl lb list' shows those of this node", q.LoadBalancer, admin.ErrNotFound)
		}
		weights, err := weighings(rows, variables, backend, q.Weight)
		if err == nil {
			err = d.follower.SetBalancerOption(ctx, rows, loadbalancer.OptionWeights, weights, heldKeys(weights, backend, q.Weight))
		}
		// Another node may have written the weight of another backend.
		if errors.Is(err, ovn.ErrChanged) && d.changed(ctx, q.LoadBalancer, rows) {
			continue
		}
		if errors.Is(err, ovsdb.ErrOutcomeUnknown) {
			err = fmt.Errorf("%w: %w", admin.ErrUnknown, err)
		}
		if err != nil {
			return nodeapi.Weighed{}, fmt.Errorf("load balancer %s: %w", q.LoadBalancer, err)
		}
		for uuid, written := range weights {
			d.log.Info("the weight of a backend was written", "load_balancer", q.LoadBalancer, "uuid", string(uuid), "backend", q.Backend, "weights", written)
		}
		return d.weighed(rows), nil
	}
}

// heldKeys are the keys of NB_Global.options that hold a weight, or that are to go: the owner of a row
// may write its options as a whole.
func heldKeys(rows ovn.BalancerOptions, backend netip.AddrPort, weight *uint16) map[string]string {
	out := map[string]string{}
	for uuid := range rows {
		key := ovn.HeldWeightKey(uuid, intent.FormatEndpoint(backend.Addr(), backend.Port()))
		if out[key] = ""; weight != nil {
			out[key] = strconv.FormatUint(uint64(*weight), 10)
		}
	}
	return out
}

// changed waits until others than these rows are known for a load balancer's name: for ten
// seconds, then it is false.
func (d *daemon) changed(ctx context.Context, name string, rows []ovn.LoadBalancer) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		var now []ovn.LoadBalancer
		d.follower.View(func(r *ovn.Rows) { now = r.BalancersNamed(name) })
		if !reflect.DeepEqual(now, rows) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// weighed tells which VIPs of the rows, and machines with them, do not heed weights.
func (d *daemon) weighed(rows []ovn.LoadBalancer) nodeapi.Weighed {
	out := nodeapi.Weighed{ByOVN: []string{}}
	all, _ := d.balancers() // what it does not serve it says nothing of
	switches := map[string]bool{}
	for _, b := range all {
		for _, v := range b.list(0) {
			if !slices.ContainsFunc(rows, func(r ovn.LoadBalancer) bool { return v.LoadBalancer == cmp.Or(r.Name, string(r.UUID)) }) {
				continue
			}
			if v.Path == string(loadbalancer.PathOVN) {
				out.ByOVN = append(out.ByOVN, fmt.Sprintf("VIP %s/%s in %s (%s)", intent.FormatEndpoint(v.Address, v.Port), v.Protocol, v.Where(), v.Reason))
				continue
			}
			switches[v.Switch] = true
		}
	}
	for _, m := range d.clients.machines() {
		if m.Switch != "" && switches[m.Switch] && m.Path == string(loadbalancer.PathOVN) {
			out.ByOVN = append(out.ByOVN, fmt.Sprintf("machine %s on switch %s (%s)", m.Port, m.Switch, m.Reason))
		}
	}
	return out
}

// weighings are options:sluice-weights for the rows of one name that have the backend:
// Octavia has a row for each protocol. Two of one protocol may be two tenants', whose
// addresses are the same.
func weighings(rows []ovn.LoadBalancer, variables map[string]string, backend netip.AddrPort, weight *uint16) (ovn.BalancerOptions, error) {
	by, out := map[string]ovn.UUID{}, ovn.BalancerOptions{}
	for _, row := range rows {
		weights, err := loadbalancer.Weigh(loadbalancer.Row{Protocol: row.Protocol, VIPs: row.VIPs, Options: row.Options, Held: row.Held}, variables, backend, weight)
		protocol := cmp.Or(row.Protocol, intent.TCP.String())
		switch other, twice := by[protocol]; {
		case errors.Is(err, loadbalancer.ErrNoSuchBackend):
			continue
		case errors.Is(err, loadbalancer.ErrBadWeight):
			return nil, fmt.Errorf("%w: %w", admin.ErrBadRequest, err)
		case err != nil:
			return nil, err
		case twice:
			return nil, fmt.Errorf("%w: %s and %s have this name and backend %s; say which by its _uuid", admin.ErrBadRequest, other, row.UUID, backend)
		}
		by[protocol] = row.UUID
		out[row.UUID] = weights
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
