package owned

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// underlay are the routes of the fabric that the node itself uses.
func underlay(ctx context.Context) ([]Thing, error) {
	routes := kernel.NewUnderlayRoutes(netns.Namespace{})
	rows, err := routes.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("routes of the underlay: %w", err)
	}
	var out []Thing
	byPrefix := func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	}
	for _, p := range slices.SortedFunc(maps.Keys(rows), byPrefix) {
		out = append(out, Thing{fmt.Sprintf("route %s of protocol %d", p, kernel.UnderlayProtocol), func(ctx context.Context) error {
			return errors.Join(routes.Delete(ctx, []netip.Prefix{p})...)
		}})
	}
	return out, nil
}
