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
	"sync"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// Thing is one object.
type Thing struct {
	// What names it for people.
	What string
	// Remove removes it; that it is gone already is no error.
	Remove func(context.Context) error
}

// List lists what is there but for metadata, in the order of removal: first what brings tenants'
// packets in, last the programs that keep them from the host, which stay while a
// device is left. pins is the directory of pinned programs and maps. The error is
// of what cannot be looked at; the list holds all the rest. It reads only.
func List(ctx context.Context, sw *ovs.Switch, pins string) ([]Thing, error) {
	var out []Thing
	var errs []error
	for _, list := range []func() ([]Thing, error){
		learned,
		func() ([]Thing, error) { return flows(ctx, sw) },
		func() ([]Thing, error) { return strays(ctx, sw) },
		func() ([]Thing, error) { return Adopted(sw) },
		func() ([]Thing, error) { return kernelPath(ctx, sw) },
		func() ([]Thing, error) { return pairs(ctx, sw) },
		unmarked,
		fabric,
		func() ([]Thing, error) { return underlay(ctx) },
		func() ([]Thing, error) { return pinned(pins) },
	} {
		things, err := list()
		out, errs = append(out, things...), append(errs, err)
	}
	return out, errors.Join(errs...)
}

// learned is what OVN has learned: routers send nothing here by it before their flows
// go. The routes go with their device.
func learned() ([]Thing, error) {
	routes := kernel.NewLearnedRoutes(netns.Namespace{})
	there, err := routes.Exists()
	if err != nil || !there {
		return nil, err
	}
	what := fmt.Sprintf("device %s with the routes of protocol %d", intent.LearnedDevice, kernel.LearnedProtocol)
	return []Thing{{what, func(context.Context) error { return routes.Remove() }}}, nil
}

func flows(ctx context.Context, sw *ovs.Switch) ([]Thing, error) {
	steering := ovs.NewSteering(sw)
	flows, err := steering.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("flows: %w", err)
	}
	byName := func(a, b intent.SteeringKey) int { return strings.Compare(a.String(), b.String()) }
	keys := slices.SortedFunc(maps.Keys(flows), byName)
	return together(keys, func(k intent.SteeringKey) string { return "flow " + k.String() }, steering.Delete), nil
}

// together are the objects of one driver. The first Remove removes all of them, and each tells what
// became of its own: one by one, a thousand VRFs' flows would take minutes.
func together[K any](keys []K, what func(K) string, remove func(context.Context, []K) []error) []Thing {
	var once sync.Once
	var errs []error
	var out []Thing
	for i, k := range keys {
		out = append(out, Thing{what(k), func(ctx context.Context) error {
			once.Do(func() { errs = remove(ctx, keys) })
			if errs == nil {
				return nil
			}
			return errs[i]
		}})
	}
	return out
}

// kernelPath is what VRFs on the kernel path have: their ways into OVN, with the
// ports of Open vSwitch, and then their devices, with which their routes go.
func kernelPath(ctx context.Context, sw *ovs.Switch) ([]Thing, error) {
	path := kernel.NewPath(kernel.PathConfig{Ports: sw}, kernel.PathNode{})
	vrfs, err := path.VRFs().List(ctx)
	if err != nil {
		return nil, fmt.Errorf("devices of VRFs: %w", err)
	}
	gateways, err := path.Gateways().List(ctx)
	if err != nil {
		return nil, fmt.Errorf("gateways of VRFs: %w", err)
	}
	byName := func(a, b intent.GatewayKey) int { return strings.Compare(a.String(), b.String()) }
	return slices.Concat(
		together(slices.SortedFunc(maps.Keys(gateways), byName),
			func(k intent.GatewayKey) string { return "kernel path of gateway " + k.String() }, path.Gateways().Delete),
		together(slices.Sorted(maps.Keys(vrfs)),
			func(vni intent.VNI) string { return "devices of VRF " + vni.String() }, path.VRFs().Delete),
	), nil
}

func pairs(ctx context.Context, sw *ovs.Switch) ([]Thing, error) {
	links := kernel.NewBridgeLinks(kernel.BridgeLinksConfig{Ports: sw})
	bridges, err := links.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("veth pairs and ports: %w", err)
	}
	what := func(k intent.BridgeKey) string { return "veth pair and port of bridge " + string(k) }
	return together(slices.Sorted(maps.Keys(bridges)), what, links.Delete), nil
}

// unmarked are pairs that a crash left before they had their mark; their names and
// addresses say whose they are.
func unmarked() ([]Thing, error) {
	names, err := kernel.Unfinished(netns.Namespace{})
	if err != nil {
		return nil, fmt.Errorf("unfinished veth pairs: %w", err)
	}
	var out []Thing
	for _, name := range names {
		out = append(out, Thing{"unfinished veth pair " + name, func(context.Context) error {
			return kernel.RemoveUnfinished(netns.Namespace{}, name)
		}})
	}
	return out, nil
}

func fabric() ([]Thing, error) {
	fabric := kernel.NewFabric(kernel.FabricConfig{})
	ok, err := fabric.Exists()
	if err != nil || !ok {
		return nil, err
	}
	return []Thing{{"device " + kernel.FabricName, func(context.Context) error { return fabric.Remove() }}}, nil
}

func pinned(pins string) ([]Thing, error) {
	pinned, err := ebpf.Pins(pins, ebpf.Fabric)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("pinned objects: %w", err)
	}
	if len(pinned) == 0 {
		return nil, nil
	}
	what := fmt.Sprintf("the directory %s, where %d programs, links and maps are pinned", pins, len(pinned))
	return []Thing{{what, func(context.Context) error {
		devices, err := kernel.Guarded(netns.Namespace{})
		if err != nil {
			return err
		}
		if len(devices) > 0 {
			return fmt.Errorf("%s: %w", strings.Join(devices, ", "), errGuarded)
		}
		return ebpf.Remove(pins, ebpf.Fabric)
	}}}, nil
}

var errGuarded = errors.New("still there, and only its programs keep tenants' packets from this host")
