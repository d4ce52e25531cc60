package ovn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
)

// BalancersNamed are the load balancers that are followed and have a name, or that _uuid,
// by _uuid. Octavia has a row for each protocol, all with one name.
func (r *Rows) BalancersNamed(name string) []LoadBalancer {
	var out []LoadBalancer
	for _, b := range r.balancers {
		if b.Name == name || string(b.UUID) == name {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b LoadBalancer) int { return cmp.Compare(a.UUID, b.UUID) })
	return out
}

// SetBalancerOption writes a key of Load_Balancer.options in the Northbound database, for
// people who ask for it; an empty value removes it. It fails if somebody else has changed
// the options since b was read.
func (f *Follower) SetBalancerOption(ctx context.Context, b LoadBalancer, key, value string) error {
	f.mu.Lock()
	src := f.nb
	f.mu.Unlock()
	if src == nil {
		return errors.New("there is no session with the Northbound database (ovn.nb)")
	}
	// Not the column's, but of selection_fields.
	before := maps.Clone(b.Options)
	delete(before, optionHashFields)
	write := ovsdb.SetKeys(nb.LoadBalancerTable, string(b.UUID), "options", map[string]string{key: value})
	if value == "" {
		write = ovsdb.DeleteKeys(nb.LoadBalancerTable, string(b.UUID), "options", key)
	}
	_, err := src.session.Transact(ctx, ovsdb.Wait(&nb.LoadBalancer{UUID: string(b.UUID), Options: before}, "options"), write)
	if err != nil {
		return fmt.Errorf("write options:%s of Load_Balancer %s: %w", key, cmp.Or(b.Name, string(b.UUID)), err)
	}
	return nil
}
