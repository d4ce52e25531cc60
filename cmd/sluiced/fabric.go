package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/beat"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// lookInterval is between two looks at devices and programs. A program that is
// taken off makes no event of the kernel.
const lookInterval = 5 * time.Second

// watchDevices looks again at what the start made: sluice-vxlan, the veth pairs,
// and their programs. What others broke is reported and made again.
func (n *node) watchDevices(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return kernel.Watch(ctx, netns.Namespace{}, n.look) })
	group.Go(func() error { return n.watchWays(ctx) })
	group.Go(func() error {
		tick := beat.New(lookInterval)
		defer tick.Stop()
		for {
			n.lookAtFabric(ctx)
			n.lookAtPairs()
			n.lookAtDrops()
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			case <-n.looks:
				n.lookAtKernelPath()
			}
		}
	})
	return group.Wait()
}

// look has the devices looked at soon.
func (n *node) look() {
	select {
	case n.looks <- struct{}{}:
	default:
	}
}

// lookAtFabric mends sluice-vxlan and its program. While they cannot be mended
// nothing is announced: what comes would be lost.
func (n *node) lookAtFabric(ctx context.Context) {
	n.form.Lock()
	defer n.form.Unlock()
	switch waits := n.waits.Load(); {
	case waits && !settings.Whole(n.d.cfg): // it is to be down
		n.noteFabric(nil)
		return
	case !waits && settings.Whole(n.d.cfg):
		n.lookAtGuard()
		return
	}
	err := n.fabricDamage()
	if err != nil && ctx.Err() == nil {
		n.d.log.Warn("the fabric device is not as it was made; making it again", "device", kernel.FabricName, "error", err)
		if _, err = n.newFabric(n.attachFabric).Ensure(ctx); err == nil {
			err = n.fabricDamage()
		}
	}
	if ctx.Err() == nil {
		n.noteFabric(err)
	}
}

// noteFabric reports, and opens or closes the gate of all announcements.
func (n *node) noteFabric(err error) {
	said := n.vtep.gate()
	switch {
	case err != nil:
		said = err.Error()
		n.d.reg.SetCondition("fabric", false, reason.Broken, said)
	case said != "":
		n.d.reg.SetCondition("fabric", false, reason.NoVTEP, said)
	default:
		n.d.reg.SetCondition("fabric", true, reason.Intact, "")
	}
	if old := n.fabricBroken.Swap(&said); (old == nil || *old == "") != (said == "") {
		n.tables.Pipeline.Update(n.tables.FabricChanged)
		n.underlay.tables.Pipeline.Update(n.underlay.tables.FabricChanged)
	}
}

// fabricDamage is why sluice-vxlan would not take packets; nil if it would.
func (n *node) fabricDamage() error {
	s, err := n.newFabric(nil).Check()
	switch {
	case err != nil:
		return err
	case len(s.Differs) > 0:
		return errors.New(strings.Join(s.Differs, "; "))
	}
	if index := n.dp.Node().VXLANIndex; s.IfIndex != int(index) {
		return fmt.Errorf("is another one: number %d, and not %d", s.IfIndex, index)
	}
	attached, err := n.dp.Attached(ebpf.FabricIn, s.IfIndex)
	if err == nil && !attached {
		err = errors.New("has lost its program")
	}
	return err
}

// attachFabric puts the program on sluice-vxlan, which may be a new device: its
// number is a constant of the programs.
func (n *node) attachFabric(_ context.Context, _ string, ifindex int) error {
	if err := n.dp.SetNode(n.ebpfConfig(ifindex).Node); err != nil {
		return err
	}
	return n.dp.Attach(ebpf.FabricIn, ifindex)
}

// announcedFrom keeps what the node announces of a VRF back while the node is drained,
// and while the fabric device is broken: what is exposed without EVPN is not behind it.
func (n *node) announcedFrom(vni intent.VNI) error {
	if err := n.drainGate(); err != nil || vni == intent.DefaultVRF {
		return err
	}
	return n.fabricGate()
}

// fabricGate keeps announcements back while the fabric device is broken, or the node does
// not have its VTEP. The node's
// own tunnel address stays announced in a drain: packets still come.
func (n *node) fabricGate() error {
	if why := n.vtep.gate(); why != "" {
		return fmt.Errorf("%w for what comes from the fabric: %s", reconcile.ErrNotReady, why)
	}
	if why := n.fabricBroken.Load(); why != nil && *why != "" {
		return fmt.Errorf("%w for what comes from the fabric: %s", reconcile.ErrNotReady, *why)
	}
	return nil
}

// lookAtPairs has the veth pairs read back when one was damaged; the table of
// bridges makes it again, and reports it.
func (n *node) lookAtPairs() {
	damage, err := n.links.Damage()
	if err == nil && len(damage) == 0 {
		n.damaged = ""
		return
	}
	if said := fmt.Sprint(damage, err); said != n.damaged {
		n.damaged = said
		if err != nil {
			n.d.log.Warn("the veth pairs cannot be looked at; reading them back", "error", err)
		} else {
			n.d.log.Warn("a veth pair is not as it was made; making it again", "damage", damage)
		}
	}
	n.relistSwitch()
}
