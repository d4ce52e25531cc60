package kernel

import (
	"context"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"
)

// guard puts vrf_guard on a device. One of that name that is no more was removed by
// somebody else.
func (p *Path) guard(ctx context.Context, g GuardedDevice) error {
	if err := p.config.Guard(ctx, g); err != nil {
		return fmt.Errorf("attaching vrf_guard to %s: %w", g.Name, err)
	}
	p.mu.Lock()
	var gone []int
	for ifindex, other := range p.guarded {
		if other.Name == g.Name && ifindex != g.IfIndex {
			gone = append(gone, ifindex)
		}
	}
	p.guarded[g.IfIndex] = g
	p.mu.Unlock()
	slices.Sort(gone)
	for _, ifindex := range gone {
		if err := p.forgetGuard(ifindex); err != nil {
			return err
		}
	}
	return nil
}

// unguard forgets the guard of a device that is about to be removed, if it is there.
// Nothing passes any more: behind the guard all is dropped.
func (p *Path) unguard(l netlink.Link) error {
	if l == nil {
		return nil
	}
	return p.forgetGuard(l.Attrs().Index)
}

func (p *Path) forgetGuard(ifindex int) error {
	if p.config.Unguard != nil {
		if err := p.config.Unguard(ifindex); err != nil {
			return fmt.Errorf("forgetting vrf_guard of device %d: %w", ifindex, err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.guarded, ifindex)
	return nil
}
