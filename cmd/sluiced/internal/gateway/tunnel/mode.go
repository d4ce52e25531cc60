package tunnel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/plane"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// The device mode: the fabric enters the node by sluice-vxlan, or, with `path: kernel`, by a device
// vxlan-<vni> for each VRF. The devices of one mode alone have the UDP port. A start
// with another mode than the last makes the new one's devices, routes and rows while
// the old one forwards, and changes over when all of it is there.

const (
	modeInterval = 100 * time.Millisecond
	// modePause is after a change over that failed: each may cost packets.
	modePause = 30 * time.Second
)

// Open opens the programs and makes sluice-vxlan, in this order: the device down, the programs, the
// device up. If the pinned programs of another build forward, plane.Replace replaces them later; else
// Open does. In the device mode with a device for each VRF there is no sluice-vxlan, unless an older
// one still forwards.
func (t *Tunnel) Open(ctx context.Context, before *Carried) (*ebpf.Dataplane, error) {
	load := func(ifindex int) error {
		dp, err := t.programs.Open(ifindex)
		if err != nil {
			return err
		}
		t.dp = dp
		if before.pinned = dp.Kept(before.fabric); before.device != nil || before.pinned != nil {
			if err := dp.Replace(ctx); err != nil {
				return err
			}
		}
		if ifindex == 0 {
			return nil
		}
		return t.dp.Attach(ebpf.FabricIn, ifindex)
	}
	fabric := t.device(func(_ context.Context, _ string, ifindex int) error { return load(ifindex) })
	err := t.enter(ctx, fabric, before, load)
	if err != nil && t.dp != nil {
		err = errors.Join(err, t.dp.Close())
	}
	return t.dp, err
}

func (t *Tunnel) enter(ctx context.Context, fabric *kernel.Fabric, before *Carried, load func(int) error) error {
	if !t.cfg.PerVRF {
		_, waits, err := fabric.Prepare(ctx)
		t.preparing.Store(waits)
		if err == nil && !waits {
			err = t.dp.UnguardVTEPs()
		}
		return err
	}
	t.preparing.Store(before.carries)
	if before.carries {
		return load(before.fabric)
	}
	return errors.Join(load(0), t.removeDevice())
}

// removeDevice removes a sluice-vxlan that forwards nothing.
func (t *Tunnel) removeDevice() error {
	fabric := t.device(nil)
	ours, err := fabric.Exists()
	if err != nil || !ours {
		return err
	}
	return fabric.Remove()
}

// KeepOut keeps packets of strangers away from the VXLAN devices of VRFs.
func (t *Tunnel) KeepOut() error {
	return t.dp.GuardVTEPs(cmp.Or(t.cfg.Port, kernel.DefaultPort))
}

// Turn tells why no VRF may change its path now: the device of the new path is still to come.
func (t *Tunnel) Turn() error {
	if t.preparing.Load() && !t.cfg.PerVRF {
		return fmt.Errorf("for %s to take the UDP port over", kernel.FabricName)
	}
	return nil
}

// changeMode changes over to the device mode of the configuration when it is prepared.
func (t *Tunnel) changeMode(ctx context.Context) error {
	if !t.preparing.Load() {
		return nil
	}
	t.log.Info("the devices of the other device mode forward until the new ones are prepared", "per_vrf", t.cfg.PerVRF)
	const failed = "the UDP port cannot be taken over from the other device mode, which keeps forwarding; trying again"
	pace := plane.Pace{Every: modeInterval, Pause: modePause}
	if plane.Make(ctx, modeChange{t}, pace, failed, t.log) {
		plane.Make(ctx, modeEnd{t, t.removeOtherMode}, pace, "what the other device mode had cannot be removed; trying again", t.log)
	}
	return nil
}

// modeChange is the change over to the device mode of the configuration.
type modeChange struct{ *Tunnel }

func (t modeChange) Told() bool {
	return t.node.ToldWanted() && !t.dp.Staged() && t.dp.Replaced()
}

func (t modeChange) Prepared() bool {
	if t.cfg.PerVRF {
		return t.tables.Settled(intent.PathKernel)
	}
	return t.tables.Settled(intent.PathEBPF)
}

// Do gives the UDP port to the devices of the new mode, and has the VRFs' rows
// and then their flows follow.
func (t modeChange) Do(ctx context.Context) error {
	t.mode.Lock()
	defer t.mode.Unlock()
	begin := time.Now()
	t.changing.Store(true)
	err := t.nothingPrepared()
	switch {
	case err != nil:
	case t.cfg.PerVRF:
		err = t.vrfs.ChangeOver()
	default:
		_, err = t.device(t.attach).Ensure(ctx)
	}
	if err != nil {
		t.changing.Store(false)
		return err
	}
	t.preparing.Store(false)
	t.tables.Pipeline.Update(t.tables.TurnCame)
	t.log.Info("the devices of the new device mode forward", "per_vrf", t.cfg.PerVRF, "took", time.Since(begin))
	return nil
}

// nothingPrepared is an error where the kernel takes none of the VRFs, as one that has
// no VRF devices: the devices of the other mode go on.
func (t *Tunnel) nothingPrepared() (err error) {
	if !t.cfg.PerVRF {
		return nil
	}
	t.tables.Pipeline.View(func() {
		wanted, prepared := false, false
		tables.Of(t.tables, intent.KernelVRFs).EachLocked(func(vni intent.VNI, _ intent.KernelVRF) {
			wanted = true
			prepared = prepared || tables.Of(t.tables, intent.KernelVRFs).ProgrammedLocked(vni)
		})
		if wanted && !prepared {
			err = errors.New("no VRF could be prepared on the kernel path")
		}
	})
	return err
}

// removeOtherMode removes what the other device mode had.
func (t *Tunnel) removeOtherMode() error {
	if t.cfg.PerVRF {
		return errors.Join(t.dp.SetNode(t.programs.Constants(0)), t.removeDevice())
	}
	return t.dp.UnguardVTEPs()
}

// modeEnd is the end of the other device mode, after the change over.
type modeEnd struct {
	*Tunnel
	remove func() error
}

func (modeEnd) Told() bool { return true }

// Prepared tells whether nothing leads through what the other mode had.
func (t modeEnd) Prepared() bool {
	return tables.Of(t.tables, intent.VRFs).Settled() && tables.Of(t.tables, intent.SteeringFlows).Settled()
}

func (t modeEnd) Do(context.Context) error {
	t.mode.Lock()
	defer t.mode.Unlock()
	if t.changing.Swap(false) {
		t.tables.RelistKernelPath()
		t.looks.Send() // Watch ignored device events meanwhile
	}
	if err := t.remove(); err != nil {
		return err
	}
	t.log.Info("the other device mode has ended", "per_vrf", t.cfg.PerVRF)
	return nil
}

// lookAtGuard is lookAtDevice where the whole node is on the kernel path. The guard is
// not put on devices that forward by another agent's routes before BGP tells
// who the VTEPs are.
func (t *Tunnel) lookAtGuard() {
	var err error
	if t.node.Imported() {
		err = t.KeepOut()
	}
	t.Note(err)
}
