package owned

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
	"github.com/ovn-sluice/sluice/dataplane/metadata/namespace"
	"github.com/ovn-sluice/sluice/dataplane/ovs"
)

// MetadataPins is where the programs and maps of metadata are pinned, beside the directory
// of all others, which a node has only as a gateway.
func MetadataPins(pins string) string { return filepath.Clean(pins) + "-metadata" }

// Metadata lists what metadata has on a node, in the order of removal: first the programs
// on taps, which are others' devices and stay; requests then go on to Open vSwitch. pins
// is MetadataPins. The error is of what cannot be looked at; the list holds all the rest.
// It reads only.
func Metadata(ctx context.Context, sw *ovs.Switch, names namespace.Names, pins string) ([]Thing, error) {
	var out []Thing
	var errs []error
	for _, list := range []func() ([]Thing, error){
		func() ([]Thing, error) { return tapPrograms(pins) },
		func() ([]Thing, error) { return metadataNetworks(ctx, sw, names) },
		func() ([]Thing, error) { return metadataProxy(names) },
	} {
		things, err := list()
		out, errs = append(out, things...), append(errs, err)
	}
	return out, errors.Join(errs...)
}

func tapPrograms(pins string) ([]Thing, error) {
	pinned, err := taps.Pins(pins)
	if err != nil {
		return nil, fmt.Errorf("metadata programs: %w", err)
	}
	if len(pinned) == 0 {
		return nil, nil
	}
	what := fmt.Sprintf("the directory %s, where %d programs, links and maps of metadata are pinned", pins, len(pinned))
	return []Thing{{what, func(context.Context) error { return taps.Remove(pins) }}}, nil
}

func metadataNetworks(ctx context.Context, sw *ovs.Switch, names namespace.Names) ([]Thing, error) {
	networks := namespace.NewNetworks(namespace.NetworksConfig{Names: names, Ports: sw})
	all, err := networks.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("metadata namespaces: %w", err)
	}
	var out []Thing
	for _, network := range slices.Sorted(maps.Keys(all)) {
		out = append(out, Thing{"metadata namespace of network " + network, func(ctx context.Context) error {
			return errors.Join(networks.Delete(ctx, []string{network})...)
		}})
	}
	return out, nil
}

func metadataProxy(names namespace.Names) ([]Thing, error) {
	proxy := namespace.NewProxy(namespace.ProxyConfig{Names: names})
	there, err := proxy.Exists()
	if err != nil {
		return nil, fmt.Errorf("namespace of the metadata proxy: %w", err)
	}
	if !there {
		return nil, nil
	}
	return []Thing{{"namespace of the metadata proxy, with device " + namespace.ProxyHost, func(context.Context) error { return proxy.Remove() }}}, nil
}
