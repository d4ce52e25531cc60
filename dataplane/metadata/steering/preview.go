package steering

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
	"github.com/ovn-sluice/sluice/dataplane/metadata/identity"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Preview tells which rows of the maps would be put, and which would go, if the ports were
// these and no others. The numbers of those that are new are not the ones that they would
// get. It changes neither maps nor file.
func (d *Driver) Preview(ctx context.Context, ports map[string]intent.MetadataPort) (put, gone []taps.Source, err error) {
	if err := d.known(ctx); err != nil {
		return nil, nil, err
	}
	left := maps.Clone(d.rows)
	var given []identity.Number
	defer func() { d.give(given) }()
	for _, name := range slices.Sorted(maps.Keys(ports)) {
		v := ports[name]
		if v.Tap != (intent.Tap{}) {
			if there, err := d.isThere(v.Tap); err != nil {
				return nil, nil, err
			} else if !there {
				continue // Apply waits for it
			}
		}
		e, taken, err := d.plan(v, d.entries[name])
		if err != nil {
			return nil, nil, fmt.Errorf("metadata of port %s: %w", name, err)
		}
		given = append(given, taken...)
		for _, s := range e.sources() {
			if !d.rows.has(s) {
				put = append(put, s)
			}
			delete(left, bare(s))
		}
	}
	return put, slices.Collect(maps.Keys(left)), nil
}
