package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/plane"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// The fabric enters the node by sluice-vxlan, or, with `path: kernel`, by a device
// vxlan-<vni> for each VRF. Only the one form or the other has the UDP port. A start
// with another form than the last makes the new one's devices, routes and rows while
// the old one carries, and changes over when all of it is there.

const (
	formInterval = 100 * time.Millisecond
	// formPause is after a change over that failed: each may cost packets.
	formPause = 30 * time.Second
	// turnPatience bounds the wait for what follows the change over.
	turnPatience = 10 * time.Second
)

// openFabric opens the programs and makes the fabric device, in this order: the device
// down, the programs, the device up. Programs of another build go on until replacePrograms,
// if what is pinned has forwarded until now; else they are replaced here. Where the whole node is on the kernel path there
// is none, but for one that carries still.
func (n *node) openFabric(ctx context.Context, before *kept) error {
	load := func(ifindex int) error {
		dp, err := ebpf.Open(n.ebpfConfig(ifindex))
		if err != nil {
			return err
		}
		n.dp = dp
		if before.pinned = dp.Kept(before.fabric); before.device != nil || before.pinned != nil {
			if err := dp.Replace(ctx); err != nil {
				return err
			}
		}
		if ifindex == 0 {
			return nil
		}
		return n.dp.Attach(ebpf.FabricIn, ifindex)
	}
	fabric := n.newFabric(func(_ context.Context, _ string, ifindex int) error { return load(ifindex) })
	err := n.enter(ctx, fabric, before, load)
	if err != nil && n.dp != nil {
		err = errors.Join(err, n.dp.Close())
	}
	return err
}

func (n *node) enter(ctx context.Context, fabric *kernel.Fabric, before *kept, load func(int) error) error {
	if !settings.Whole(n.d.cfg) {
		_, waits, err := fabric.Prepare(ctx)
		n.waits.Store(waits)
		if err == nil && !waits {
			err = n.dp.UnguardVTEPs()
		}
		return err
	}
	n.waits.Store(before.carries)
	if before.carries {
		return load(before.fabric)
	}
	return errors.Join(load(0), n.removeFabric())
}

// removeFabric removes a sluice-vxlan that carries nothing.
func (n *node) removeFabric() error {
	fabric := n.newFabric(nil)
	ours, err := fabric.Exists()
	if err != nil || !ours {
		return err
	}
	return fabric.Remove()
}

// keepOut keeps packets of strangers away from the VXLAN devices of VRFs.
func (n *node) keepOut() error {
	return n.dp.GuardVTEPs(cmp.Or(n.d.cfg.Fabric.Port, kernel.DefaultPort))
}

// turn tells why no VRF may change its path now: the new path would lack what the
// neighbours have still to send, or the device.
func (n *node) turn() error {
	switch {
	case !n.bgpSync.Load():
		return errors.New("for the routes of the neighbours")
	case n.waits.Load() && !settings.Whole(n.d.cfg):
		return fmt.Errorf("for %s to take the UDP port over", kernel.FabricName)
	}
	return nil
}

// changeForm changes over to the form of the configuration when it is prepared.
func (n *node) changeForm(ctx context.Context) error {
	if !n.waits.Load() {
		return nil
	}
	n.d.log.Info("the fabric comes in by the devices of the other form until this one is prepared", "whole", settings.Whole(n.d.cfg))
	told := func() bool { return n.toldWanted() && !n.dp.Staged() && n.dp.Replaced() }
	if (plane.Change{Every: formInterval, Pause: formPause, Told: told, Prepared: n.prepared, Do: n.takePort,
		Failed: "the UDP port cannot be taken over; what has it goes on; trying again"}).Run(ctx, n.d.log) {
		return n.leaveForm(ctx)
	}
	return nil
}

// prepared tells whether no row of the new form waits for its turn.
func (n *node) prepared() bool {
	if settings.Whole(n.d.cfg) {
		return n.tables.Settled(intent.PathKernel)
	}
	return n.tables.Settled(intent.PathEBPF)
}

// takePort gives the UDP port to the devices of the new form, and has the VRFs' rows
// and then their flows follow.
func (n *node) takePort(ctx context.Context) error {
	n.form.Lock()
	defer n.form.Unlock()
	begin := time.Now()
	n.turns.Store(true)
	err := n.nothingPrepared()
	switch {
	case err != nil:
	case settings.Whole(n.d.cfg):
		err = n.kernel.ChangeOver()
	default:
		_, err = n.newFabric(n.attachFabric).Ensure(ctx)
	}
	if err != nil {
		n.turns.Store(false)
		return err
	}
	n.waits.Store(false)
	n.tables.Pipeline.Update(n.tables.TurnCame)
	n.d.log.Info("the fabric comes in by the devices of this form", "whole", settings.Whole(n.d.cfg), "took", time.Since(begin))
	return nil
}

// nothingPrepared is an error where the kernel takes none of the VRFs, as one that has
// no VRF devices: what carries them goes on.
func (n *node) nothingPrepared() (err error) {
	if !settings.Whole(n.d.cfg) {
		return nil
	}
	n.tables.Pipeline.View(func() {
		wanted, prepared := false, false
		tables.Of(n.tables, intent.KernelVRFs).EachLocked(func(vni intent.VNI, _ intent.KernelVRF) {
			wanted = true
			prepared = prepared || tables.Of(n.tables, intent.KernelVRFs).ProgrammedLocked(vni)
		})
		if wanted && !prepared {
			err = errors.New("no VRF could be prepared on the kernel path")
		}
	})
	return err
}

// leaveForm waits until nothing leads through what the other form had, and removes it.
func (n *node) leaveForm(ctx context.Context) error {
	tick := time.NewTicker(formInterval)
	defer tick.Stop()
	for deadline := time.Now().Add(turnPatience); time.Now().Before(deadline); {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if tables.Of(n.tables, intent.VRFs).Settled() && tables.Of(n.tables, intent.SteeringFlows).Settled() {
			break
		}
	}
	n.form.Lock()
	defer n.form.Unlock()
	n.turns.Store(false)
	n.relistKernelPath()
	err := n.dp.UnguardVTEPs
	if settings.Whole(n.d.cfg) {
		err = func() error { return errors.Join(n.dp.SetNode(n.ebpfConfig(0).Node), n.removeFabric()) }
	}
	if err := err(); err != nil {
		n.d.log.Warn("what the other form had is not removed", "error", err)
	}
	return nil
}

// lookAtGuard is lookAtFabric where the whole node is on the kernel path. The guard is
// not put on devices that carry what another agent's routes brought before BGP tells
// who the VTEPs are.
func (n *node) lookAtGuard() {
	var err error
	if n.imported.Load() {
		err = n.keepOut()
	}
	n.noteFabric(err)
}
