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

// TapsDir is where the programs of taps are pinned, below the directory of all pins:
// beside those of gateways, which come and go with the node's role.
func TapsDir(pins string) string { return filepath.Join(pins, "taps") }

// Metadata lists what serves metadata, in the order of removal: first what takes
// requests from taps, which from then on go to OVN. pins is the directory of all pins.
func Metadata(ctx context.Context, sw *ovs.Switch, pins string) ([]Thing, error) {
	var out []Thing
	dir := TapsDir(pins)
	list, err := taps.Pins(dir)
	if err != nil {
		err = fmt.Errorf("pinned objects of taps: %w", err)
	}
	errs := []error{err}
	if len(list) > 0 {
		what := fmt.Sprintf("the directory %s, where %d programs, links and maps of taps are pinned", dir, len(list))
		out = append(out, Thing{what, func(context.Context) error { return taps.Remove(dir) }})
	}
	proxy := namespace.NewProxy(namespace.ProxyConfig{})
	there, err := proxy.Exists()
	if errs = append(errs, err); there {
		out = append(out, Thing{"network namespace of the metadata proxy", func(context.Context) error { return proxy.Remove() }})
	}
	networks := namespace.NewNetworks(namespace.NetworksConfig{Ports: sw})
	rows, err := networks.List(ctx)
	if err != nil {
		err = fmt.Errorf("namespaces of networks: %w", err)
	}
	errs = append(errs, err)
	for _, n := range slices.Sorted(maps.Keys(rows)) {
		out = append(out, Thing{"network namespace and port for the metadata of network " + n, func(ctx context.Context) error {
			return errors.Join(networks.Delete(ctx, []string{n})...)
		}})
	}
	return out, errors.Join(errs...)
}
