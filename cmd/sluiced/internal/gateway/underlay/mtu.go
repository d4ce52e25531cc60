package underlay

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// MTU is the configured MTU of the underlay, else the MTU of the paths to the BGP neighbours.
func MTU(c *config.Config, vtep netip.Addr) (int, error) {
	if c.Fabric.MTU != 0 {
		return int(c.Fabric.MTU), nil
	}
	facts := link.New(netns.Namespace{})
	if len(c.BGP.Neighbors) == 0 {
		u, err := facts.Towards(vtep)
		return u.MTU, err
	}
	return mtuTowards(c.BGP.Neighbors, func(n config.Neighbor) (int, error) { return neighborMTU(facts, n) })
}

// mtuTowards is the smallest MTU of the links that have a neighbour each, since a tunnel may use
// any of them. Without such links it is the MTU of the path to the first neighbour that has a path:
// BGP may still have to find the others.
func mtuTowards(neighbors []config.Neighbor, mtu func(config.Neighbor) (int, error)) (int, error) {
	var errs []error
	first, least := 0, 0
	for _, n := range neighbors {
		switch m, err := mtu(n); {
		case err != nil:
			errs = append(errs, err)
		case n.Interface != "" && (least == 0 || m < least):
			least = m
		case n.Interface == "" && first == 0:
			first = m
		}
	}
	if m := cmp.Or(least, first); m != 0 {
		return m, nil
	}
	return 0, errors.Join(errs...)
}

func neighborMTU(facts *link.Facts, n config.Neighbor) (int, error) {
	if n.Interface == "" {
		u, err := facts.Towards(n.Address)
		return u.MTU, err
	}
	links, err := facts.Links()
	for _, l := range links {
		if l.Name == n.Interface {
			return l.MTU, nil
		}
	}
	return 0, errors.Join(err, fmt.Errorf("no link %s", n.Interface))
}
