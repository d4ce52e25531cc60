package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/admin/nodeapi"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
)

// weighPatience bounds a write of weights: a person waits.
const weighPatience = 10 * time.Second

// Weigh writes the weight of a backend where all nodes read it.
func (r *Report) Weigh(ctx context.Context, q nodeapi.WeighRequest) (nodeapi.Weighed, error) {
	backend, err := loadbalancer.ParseBackend(q.Backend)
	if err != nil {
		return nodeapi.Weighed{}, fmt.Errorf("%w: backend %w", admin.ErrBadRequest, err)
	}
	var rows []ovn.LoadBalancer
	var variables map[string]string
	r.follower.View(func(r *ovn.Rows) { rows, variables = r.BalancersNamed(q.LoadBalancer), r.TemplateVariables() })
	if len(rows) == 0 {
		return nodeapi.Weighed{}, fmt.Errorf("load balancer %q: %w; 'sluicectl lb list' shows the load balancers of this node", q.LoadBalancer, admin.ErrNotFound)
	}
	w := weighing{variables: variables, backend: backend, weight: q.Weight}
	for _, row := range rows {
		w.rows = append(w.rows, row.UUID)
	}
	endpoints, tls, err := r.follower.Northbound()
	if err == nil {
		ctx, end := context.WithTimeout(ctx, weighPatience)
		defer end()
		err = northbound.Once(ctx, northbound.Config{Endpoints: endpoints, TLS: tls, Program: "sluiced"}, w.part(), "weigh "+q.Backend, w.write)
	}
	if errors.Is(err, ovsdb.ErrOutcomeUnknown) {
		err = fmt.Errorf("%w: options:%s of Load_Balancer may have been written, or may not: %w", admin.ErrUnknown, loadbalancer.OptionWeights, err)
	}
	if err != nil {
		return nodeapi.Weighed{}, fmt.Errorf("load balancer %q: %w", q.LoadBalancer, err)
	}
	for uuid, written := range w.written {
		r.log.Info("the weight of a backend was written", "load_balancer", q.LoadBalancer, "uuid", string(uuid), "backend", q.Backend, "weights", written)
	}
	return r.weighed(rows), nil
}

// weighing is a transaction that gives a backend of some rows of Load_Balancer a weight; nil
// takes its weight back.
type weighing struct {
	rows      []ovn.UUID
	variables map[string]string
	backend   netip.AddrPort
	weight    *uint16
	// written are options:sluice-weights by row, as the last call of write had them.
	written map[ovn.UUID]string
}

// part is what the transaction reads.
func (w *weighing) part() northbound.Part {
	var rows []ovsdb.Clause
	for _, uuid := range w.rows {
		rows = append(rows, ovsdb.Equal("_uuid", ovsdb.UUID(uuid)))
	}
	return northbound.Part{
		Tables:     ovsdb.Tables{nb.LoadBalancerTable: {"protocol", "vips", "options"}, nb.NBGlobalTable: {"options"}},
		Conditions: ovsdb.Conditions{nb.LoadBalancerTable: rows, nb.NBGlobalTable: {ovsdb.All()}},
	}
}

// write has the weight in the rows, and in NB_Global: the owner of a row may write its options as
// a whole.
func (w *weighing) write(tx *northbound.Tx) error {
	global, ok := northbound.One(tx, northbound.Global, "", "options")
	if !ok {
		return errors.New("NB_Global has no row")
	}
	held := ovn.HeldWeights(global.Options)
	rows, read := map[ovn.UUID]*nb.LoadBalancer{}, []weighable{}
	for _, uuid := range w.rows {
		row, ok := northbound.Get[*nb.LoadBalancer](tx, string(uuid), "protocol", "vips", "options")
		if !ok {
			continue
		}
		rows[uuid] = row
		one := weighable{uuid, loadbalancer.Row{VIPs: row.Vips, Options: row.Options, Held: held[uuid]}}
		if row.Protocol != nil {
			one.Protocol = *row.Protocol
		}
		read = append(read, one)
	}
	var err error
	if w.written, err = weighings(read, w.variables, w.backend, w.weight); err != nil {
		return err
	}
	for uuid, weights := range w.written {
		row := rows[uuid]
		row.Options = withKey(row.Options, loadbalancer.OptionWeights, weights)
		tx.Update(row, "options")
		hold := ""
		if w.weight != nil {
			hold = strconv.FormatUint(uint64(*w.weight), 10)
		}
		key := ovn.HeldWeightKey(uuid, intent.FormatEndpoint(w.backend.Addr(), w.backend.Port()))
		global.Options = withKey(global.Options, key, hold)
	}
	tx.Update(global, "options")
	return nil
}

// withKey is a map with a value under a key; an empty one removes it.
func withKey(pairs map[string]string, key, value string) map[string]string {
	pairs = maps.Clone(pairs)
	if value == "" {
		delete(pairs, key)
		return pairs
	}
	if pairs == nil {
		pairs = map[string]string{}
	}
	pairs[key] = value
	return pairs
}

// weighed tells which VIPs of the rows, and VMs with them, do not heed weights.
func (r *Report) weighed(rows []ovn.LoadBalancer) nodeapi.Weighed {
	out := nodeapi.Weighed{ByOVN: []string{}}
	all, _ := r.balancers() // what it does not serve it says nothing of
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
	for _, m := range r.VMs() {
		if m.Switch != "" && switches[m.Switch] && m.Path == string(loadbalancer.PathOVN) {
			out.ByOVN = append(out.ByOVN, fmt.Sprintf("VM %s on switch %s (%s)", m.Port, m.Switch, m.Reason))
		}
	}
	return out
}

// weighable is a row whose backends may get weights.
type weighable struct {
	uuid ovn.UUID
	loadbalancer.Row
}

// weighings are options:sluice-weights for the rows of one name that have the backend:
// Octavia has a row for each protocol. Two of one protocol may be two tenants', whose
// addresses are the same.
func weighings(rows []weighable, variables map[string]string, backend netip.AddrPort, weight *uint16) (map[ovn.UUID]string, error) {
	by, out := map[string]ovn.UUID{}, map[ovn.UUID]string{}
	for _, row := range rows {
		weights, err := loadbalancer.Weigh(row.Row, variables, backend, weight)
		protocol := cmp.Or(row.Protocol, intent.TCP.String())
		switch other, twice := by[protocol]; {
		case errors.Is(err, loadbalancer.ErrNoSuchBackend):
			continue
		case errors.Is(err, loadbalancer.ErrBadWeight):
			return nil, fmt.Errorf("%w: %w", admin.ErrBadRequest, err)
		case err != nil:
			return nil, err
		case twice:
			return nil, fmt.Errorf("%w: %s and %s have this name and backend %s; name one by its _uuid", admin.ErrBadRequest, other, row.uuid, backend)
		}
		by[protocol] = row.uuid
		out[row.uuid] = weights
	}
	if len(out) == 0 {
		hint := ""
		if backend.Port() == 0 {
			hint = "; a backend is ADDRESS:PORT, IPv6 in brackets"
		}
		return nil, fmt.Errorf("backend %s: %w%s", intent.FormatEndpoint(backend.Addr(), backend.Port()), admin.ErrNotFound, hint)
	}
	return out, nil
}
