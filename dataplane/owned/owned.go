// Package owned lists everything on a node that carries Sluice's mark, and
// removes it: for "sluicectl cleanup", and for a node that is no gateway any
// more. What carries no mark is never touched.
package owned

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Thing is one object.
type Thing struct {
	// What names it for people.
	What string
	// Remove removes it; that it is gone already is no error.
	Remove func(context.Context) error
}

// List lists what is there, in the order of removal: first what brings tenants'
// packets in, last the programs that keep them from the host. pins is the
// directory of pinned programs and maps. It reads only.
func List(ctx context.Context, sw *ovs.Switch, pins string) ([]Thing, error) {
	var out []Thing
	steering := ovs.NewSteering(sw)
	flows, err := steering.List(ctx)
	if err != nil {
		return nil, err
	}
	byName := func(a, b intent.SteeringKey) int { return strings.Compare(a.String(), b.String()) }
	for _, k := range slices.SortedFunc(maps.Keys(flows), byName) {
		out = append(out, Thing{"flow " + k.String(), func(ctx context.Context) error {
			return errors.Join(steering.Delete(ctx, []intent.SteeringKey{k})...)
		}})
	}
	links := kernel.NewBridgeLinks(kernel.BridgeLinksConfig{Ports: sw})
	bridges, err := links.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, k := range slices.Sorted(maps.Keys(bridges)) {
		out = append(out, Thing{"veth pair and port of bridge " + string(k), func(ctx context.Context) error {
			return errors.Join(links.Delete(ctx, []intent.BridgeKey{k})...)
		}})
	}
	fabric := kernel.NewFabric(kernel.FabricConfig{})
	if ok, err := fabric.Exists(); err != nil {
		return nil, err
	} else if ok {
		out = append(out, Thing{"device " + kernel.FabricName, func(context.Context) error { return fabric.Remove() }})
	}
	pinned, err := ebpf.Pins(pins)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("pinned objects: %w", err)
	}
	if len(pinned) > 0 {
		out = append(out, Thing{fmt.Sprintf("programs and maps pinned in %s: %s", pins, strings.Join(pinned, " ")),
			func(context.Context) error { return ebpf.Remove(pins) }})
	}
	return out, nil
}
