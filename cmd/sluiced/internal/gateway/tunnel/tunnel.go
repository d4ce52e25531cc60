// Package tunnel is the node's end of the VXLAN tunnels: its device or devices, the programs on
// them, their repair, and the change from one device mode to the other.
package tunnel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/beat"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// lookInterval is between two looks at devices and programs. A program that is
// detached makes no event of the kernel.
const lookInterval = 5 * time.Second

// Config is what the configuration says of the tunnels.
type Config struct {
	// PerVRF is the device mode: one VXLAN device for each VRF, or sluice-vxlan for all.
	PerVRF    bool
	Port      uint16
	RouterMAC intent.MAC
	VTEP      netip.Addr
}

// Programs opens the programs, for a sluice-vxlan of that number (0: there is none), and tells
// their constants.
type Programs interface {
	Open(ifindex int) (*ebpf.Dataplane, error)
	Constants(ifindex int) ebpf.Node
}

// Node is what the tunnel asks of its node, and tells it.
type Node interface {
	// ToldWanted tells whether the tables have been told all that is wanted of them.
	ToldWanted() bool
	// Imported tells whether they have been told what the neighbours sent.
	Imported() bool
	// GateChanged is told that announcements may go on, or may not.
	GateChanged()
	// VTEPChanged is told that the node has lost its VTEP, or has it again.
	VTEPChanged()
}

// Devices are the devices that others than the tunnel have.
type Devices interface {
	// Damage is what is wrong with the veth pairs of provider bridges.
	Damage() ([]string, error)
}

// ChangeOver gives the UDP port to the VXLAN devices of VRFs: kernel.Path.
type ChangeOver interface{ ChangeOver() error }

// Tunnel has two phases: Open before there are tables, and Watch with them.
type Tunnel struct {
	cfg      Config
	programs Programs
	node     Node
	pairs    Devices
	vrfs     ChangeOver
	reg      *status.Registry
	log      *slog.Logger

	dp     *ebpf.Dataplane // since Open
	tables *tables.Tables  // since Watch
	looks  loop.Signal     // devices are to be looked at

	// mode is held while the devices are looked at or change over. preparing: the devices of the
	// other mode forward, and those of this one are prepared. changing: they have changed over, and
	// the rows follow.
	mode                sync.Mutex
	preparing, changing atomic.Bool

	// broken says what is wrong with sluice-vxlan; nil or empty: nothing.
	broken  atomic.Pointer[string]
	vtep    ownVTEP
	damaged string // what was last said of the veth pairs
}

// New makes it. It does no I/O.
func New(cfg Config, programs Programs, node Node, pairs Devices, vrfs ChangeOver, reg *status.Registry, log *slog.Logger) *Tunnel {
	return &Tunnel{cfg: cfg, programs: programs, node: node, pairs: pairs, vrfs: vrfs, reg: reg, log: log, looks: loop.NewSignal()}
}

// Device is sluice-vxlan, on which attach puts the program; nil: it is only looked at.
func Device(cfg Config, attach kernel.Attach) *kernel.Fabric {
	return kernel.NewFabric(kernel.FabricConfig{Port: cfg.Port, RouterMAC: cfg.RouterMAC, Attach: attach})
}

func (t *Tunnel) device(attach kernel.Attach) *kernel.Fabric { return Device(t.cfg, attach) }

// Watch looks again at what the start made: sluice-vxlan, the veth pairs,
// and their programs. What others broke is reported and made again.
func (t *Tunnel) Watch(ctx context.Context, rows *tables.Tables) error {
	t.tables = rows
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return kernel.Watch(ctx, netns.Namespace{}, t.looks.Send) })
	group.Go(func() error { return t.changeMode(ctx) })
	group.Go(func() error {
		tick := beat.New(lookInterval)
		defer tick.Stop()
		for {
			t.lookAtDevice(ctx)
			t.lookAtPairs()
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			case <-t.looks:
				if !t.changing.Load() { // it is looked at when that is over, and would only take its time now
					t.tables.RelistDevices()
				}
			}
		}
	})
	return group.Wait()
}

// lookAtDevice mends sluice-vxlan and its program. While they cannot be mended
// nothing is announced: what comes would be lost.
func (t *Tunnel) lookAtDevice(ctx context.Context) {
	t.mode.Lock()
	defer t.mode.Unlock()
	switch waits := t.preparing.Load(); {
	case waits && !t.cfg.PerVRF: // it is to be down
		t.Note(nil)
		return
	case !waits && t.cfg.PerVRF:
		t.lookAtGuard()
		return
	}
	err := t.damage()
	if err != nil && ctx.Err() == nil {
		t.log.Warn("the fabric device was changed; repairing it", "device", kernel.FabricName, "error", err)
		if _, err = t.device(t.attach).Ensure(ctx); err == nil {
			err = t.damage()
		}
	}
	if ctx.Err() == nil {
		t.Note(err)
	}
}

// Note reports what is wrong with the device, and opens or closes the gate of all announcements.
func (t *Tunnel) Note(err error) {
	said := t.vtep.gate()
	switch {
	case err != nil:
		said = err.Error()
		t.reg.SetCondition("fabric", false, reason.Broken, said)
	case said != "":
		t.reg.SetCondition("fabric", false, reason.NoVTEP, said)
	default:
		t.reg.SetCondition("fabric", true, reason.Intact, "")
	}
	if old := t.broken.Swap(&said); (old == nil || *old == "") != (said == "") {
		t.node.GateChanged()
	}
}

// damage is why sluice-vxlan would not take packets; nil if it would.
func (t *Tunnel) damage() error {
	s, err := t.device(nil).Check()
	switch {
	case err != nil:
		return err
	case len(s.Differs) > 0:
		return errors.New(strings.Join(s.Differs, "; "))
	}
	if index := t.dp.Node().VXLANIndex; s.IfIndex != int(index) {
		return fmt.Errorf("is another one: number %d, and not %d", s.IfIndex, index)
	}
	attached, err := t.dp.Attached(ebpf.FabricIn, s.IfIndex)
	if err == nil && !attached {
		err = errors.New("has lost its program")
	}
	return err
}

// attach puts the program on sluice-vxlan, which may be a new device: its
// number is a constant of the programs.
func (t *Tunnel) attach(_ context.Context, _ string, ifindex int) error {
	if err := t.dp.SetNode(t.programs.Constants(ifindex)); err != nil {
		return err
	}
	return t.dp.Attach(ebpf.FabricIn, ifindex)
}

// Gate keeps announcements back while sluice-vxlan is broken, or the node does not have its VTEP.
func (t *Tunnel) Gate() error {
	if why := t.vtep.gate(); why != "" {
		return fmt.Errorf("%w for what comes from the fabric: %s", reconcile.ErrNotReady, why)
	}
	if why := t.broken.Load(); why != nil && *why != "" {
		return fmt.Errorf("%w for what comes from the fabric: %s", reconcile.ErrNotReady, *why)
	}
	return nil
}

// lookAtPairs has the veth pairs read back when one was damaged; the table of
// bridges makes it again, and reports it.
func (t *Tunnel) lookAtPairs() {
	damage, err := t.pairs.Damage()
	if err == nil && len(damage) == 0 {
		t.damaged = ""
		return
	}
	if said := fmt.Sprint(damage, err); said != t.damaged {
		t.damaged = said
		if err != nil {
			t.log.Warn("the veth pairs cannot be checked; reading them back", "error", err)
		} else {
			t.log.Warn("a veth pair was changed; repairing it", "damage", damage)
		}
	}
	t.tables.RelistSwitch()
}

// Problem is why the node as a whole announces nothing that is behind the tunnel: a reason and its
// text for people. The reason is empty where nothing is wrong.
func (t *Tunnel) Problem() (why, text string) {
	if lost := t.vtep.gate(); lost != "" {
		return reason.NoVTEP, lost
	}
	if broken := t.broken.Load(); broken != nil && *broken != "" {
		return reason.Broken, *broken
	}
	return "", ""
}

// NoVTEP says why the node does not have its VTEP; empty: it does.
func (t *Tunnel) NoVTEP() string { return t.vtep.gate() }

// Forget deletes the gateway's reports. LookAtVTEP reports nothing after it. awaits is what the
// next gateway waits for.
func (t *Tunnel) Forget(awaits string) {
	t.vtep.mu.Lock()
	t.vtep.forgotten = true
	t.reg.Reporter(hostReports).Replace(nil)
	t.vtep.mu.Unlock()
	if t.broken.Load() != nil {
		t.reg.SetCondition("fabric", true, reason.Stopped, awaits)
	}
}
