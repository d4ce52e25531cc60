package ebpf

import (
	"context"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// change is one route on its way into a map.
type change struct {
	i   int // which of the rows
	old bpfRoute
	had bool
	new bpfRoute
}

// Apply writes rows in batches. What a row refers to is written before it, and
// what its old value referred to is released after it.
func (r *Routes) Apply(_ context.Context, rows []reconcile.Row[intent.RouteKey, intent.Route]) []error {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return r.s.applyRoutes(rows)
}

func (s *store) applyRoutes(rows []reconcile.Row[intent.RouteKey, intent.Route]) []error {
	var out results
	fail := func(i int, err error) {
		out.set(len(rows), i, fmt.Errorf("route %s: %w", rows[i].Key, err))
	}
	var hosts, four, six []change
	for i, row := range rows {
		c, err := s.prepare(i, row)
		switch {
		case err != nil:
			fail(i, err)
		case row.Key.IsHost():
			hosts = append(hosts, c)
		case row.Key.Prefix.Addr().Is4():
			four = append(four, c)
		default:
			six = append(six, c)
		}
	}
	writeRoutes(s, bpfMapHostsV1, rows, hosts, hostKey, nil, fail)
	writeRoutes(s, bpfMapPrefixes4V1, rows, four, prefix4Key, s.prefixes4, fail)
	writeRoutes(s, bpfMapPrefixes6V1, rows, six, prefix6Key, s.prefixes6, fail)
	return out
}

func (s *store) prepare(i int, row reconcile.Row[intent.RouteKey, intent.Route]) (c change, err error) {
	c.i = i
	if err := checkRoute(row.Key); err != nil {
		return c, err
	}
	if c.old, c.had, err = s.lookupRoute(row.Key); err != nil {
		return c, err
	}
	route := row.Value
	route.Key = row.Key
	if c.new, err = s.acquireRef(route); err == nil && route.VIP && (!c.had || !c.old.isVIP()) {
		s.vipComes(row.Key)
	}
	return c, err
}

// writeRoutes writes the changes of one map. trie is the copy of a trie, nil for hosts.
func writeRoutes[K comparable](s *store, name string, rows []reconcile.Row[intent.RouteKey, intent.Route],
	changes []change, key func(intent.RouteKey) K, trie map[K]bpfRoute, fail func(int, error)) {
	batch := 4096
	for len(changes) > 0 {
		chunk := changes[:min(batch, len(changes))]
		keys, values := make([]K, len(chunk)), make([]bpfRoute, len(chunk))
		for i, c := range chunk {
			keys[i], values[i] = key(rows[c.i].Key), c.new
		}
		n, err := s.t[name].BatchUpdate(keys, values, &ebpf.BatchOptions{ElemFlags: uint64(ebpf.UpdateAny)})
		switch {
		case err == nil:
			n = len(chunk)
		case n == len(chunk) && n > 1:
			// The kernel refused before the first row and says nothing of how many.
			batch = 1
			continue
		case n == len(chunk):
			n = 0
		}
		// After an error the kernel has written n rows, and the next is the bad one.
		for i, c := range chunk[:n] {
			route := rows[c.i].Key
			if trie != nil {
				trie[keys[i]] = values[i]
				s.cache.forget()
			}
			s.follow(route, c.old, values[i])
			s.front.put(frontKey(route), values[i], c.had)
			if !c.had {
				s.vrfs.add(lengthOf(route))
			}
			if !c.had {
				s.rows[name]++
			} else if err := s.releaseRef(c.old); err != nil {
				fail(c.i, err)
			}
		}
		if n < len(chunk) {
			fail(chunk[n].i, mapError(name, err))
			if err := s.releaseRef(chunk[n].new); err != nil {
				fail(chunk[n].i, err)
			}
			n++
		}
		changes = changes[n:]
	}
}
