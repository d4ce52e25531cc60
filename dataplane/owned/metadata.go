package owned

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

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
	what := func(network string) string { return "metadata namespace of network " + network }
	return together(slices.Sorted(maps.Keys(all)), what, networks.Delete), nil
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

// FindAdoptableMetadata lists the namespaces that neutron-ovn-metadata-agent left on the node;
// of the networks of only, if there are any. strangers have such names and are not of its
// form, and why: they stay what they are. It reads only.
func FindAdoptableMetadata(ctx context.Context, sw *ovs.Switch, names namespace.Names, only []string) (found []Adoptable, strangers []namespace.Stranger, err error) {
	networks := namespace.NewNetworks(namespace.NetworksConfig{Names: names, Ports: sw})
	all, strangers, err := networks.Adoptable(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("metadata namespaces: %w", err)
	}
	chosen := func(network string) bool { return len(only) == 0 || slices.Contains(only, network) }
	for _, a := range all {
		if chosen(a.Network) {
			found = append(found, Adoptable{
				What:     fmt.Sprintf("metadata namespace of network %s: %s", a.Network, strings.Join(a.Unmarked, ", ")),
				Evidence: evidence(a),
				Adopt:    func(ctx context.Context) error { return networks.Adopt(ctx, a.Network) },
			})
		}
	}
	return found, slices.DeleteFunc(strangers, func(s namespace.Stranger) bool { return !chosen(s.Network) }), nil
}

// evidence is what shows that a namespace is the agent's.
func evidence(a namespace.Adoptable) string {
	if !a.Pair {
		return "it has the name that it gives, and no device"
	}
	outside, inside := namespace.Devices(a.Network)
	out := fmt.Sprintf("%s on the node and %s in it are a pair", outside, inside)
	var processes []string
	for _, p := range a.Processes {
		processes = append(processes, fmt.Sprintf("%s (%d)", p.Name, p.PID))
	}
	if len(processes) > 0 {
		out += "; in there: " + strings.Join(processes, ", ")
	}
	return out
}
