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
			b.Held = r.held(b)
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b LoadBalancer) int { return cmp.Compare(a.UUID, b.UUID) })
	return out
}

// ErrChanged means that somebody else has changed a row since it was read.
var ErrChanged = errors.New("somebody else has changed it meanwhile")

// BalancerOptions are the values of one key of Load_Balancer.options that rows get, by
// _uuid; an empty one removes the key.
type BalancerOptions map[UUID]string

// SetBalancerOption writes a key of Load_Balancer.options in the Northbound database, for
// people who ask for it: in all rows, or in none. held are keys of NB_Global.options that it
// writes with them; an empty value removes one. It fails with ErrChanged if somebody else
// has changed the options of a row since it was read.
func (f *Follower) SetBalancerOption(ctx context.Context, rows []LoadBalancer, key string, values BalancerOptions, held map[string]string) error {
	f.mu.Lock()
	src := f.nb
	f.mu.Unlock()
	if src == nil {
		return errors.New("there is no session with the Northbound database (ovn.nb)")
	}
	var operations []ovsdb.Operation
	for _, b := range rows {
		value, ok := values[b.UUID]
		if !ok {
			continue
		}
		before := maps.Clone(b.Options)
		delete(before, optionHashFields)
		if b.HashFields != "" {
			before[optionHashFields] = b.HashFields
		}
		write := ovsdb.SetKeys(nb.LoadBalancerTable, string(b.UUID), "options", map[string]string{key: value})
		if value == "" {
			write = ovsdb.DeleteKeys(nb.LoadBalancerTable, string(b.UUID), "options", key)
		}
		operations = append(operations, ovsdb.Wait(&nb.LoadBalancer{UUID: string(b.UUID), Options: before}, "options"), write)
	}
	operations = append(operations, f.hold(held)...)
	_, err := src.session.Transact(ctx, operations...)
	if errors.Is(err, ovsdb.ErrConflict) {
		err = ErrChanged
	}
	if errors.Is(err, ovsdb.ErrOutcomeUnknown) {
		return fmt.Errorf("options:%s of Load_Balancer may have been written, or may not: %w", key, err)
	}
	if err != nil {
		return fmt.Errorf("write options:%s of Load_Balancer: %w", key, err)
	}
	return nil
}

// hold are the operations that write keys of NB_Global.options, and remove those without a value.
func (f *Follower) hold(keys map[string]string) (out []ovsdb.Operation) {
	var global UUID
	f.View(func(r *Rows) {
		for id := range r.globals {
			global = id
		}
	})
	set, gone := map[string]string{}, []string{}
	for key, value := range keys {
		if value == "" {
			gone = append(gone, key)
		} else {
			set[key] = value
		}
	}
	if len(set) > 0 {
		out = append(out, ovsdb.SetKeys(nb.NBGlobalTable, string(global), "options", set))
	}
	if len(gone) > 0 {
		out = append(out, ovsdb.DeleteKeys(nb.NBGlobalTable, string(global), "options", slices.Sorted(slices.Values(gone))...))
	}
	return out
}
