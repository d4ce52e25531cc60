package ebpf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// The programs of VMs' taps. The taps are others': what the programs do not take goes
// on as it came, with them or without.
const (
	ClientIn  Program = 4
	ClientOut Program = 5
)

// onTap tells whether the program is for VMs' taps.
func (p Program) onTap() bool { return p == ClientIn || p == ClientOut }

// VMs drives the map clients, and the attachments of ClientIn and ClientOut.
type VMs struct {
	d *Dataplane
	s *store
	// attached tells whether a device has a program.
	attached func(p Program, ifindex int) (bool, error)
}

// VMs is the driver of the table Clients.
func (d *Dataplane) VMs() *VMs { return &VMs{d, d.store, d.Attached} }

// VMs lists the table Clients.
func (i *Inspection) VMs() *VMs {
	return &VMs{s: i.store, attached: func(p Program, ifindex int) (bool, error) {
		ok, _, err := i.attachedProgram(i.hook.Pick(), p, ifindex)
		return ok, err
	}}
}

var _ reconcile.Driver[intent.TapClientKey, intent.TapClient] = (*VMs)(nil)

func clientKernelKey(k intent.TapClientKey) bpfClientKey {
	return bpfClientKey{Ifindex: k.IfIndex, Vlan: uint32(k.VLAN)}
}

func clientKey(k bpfClientKey) intent.TapClientKey {
	return intent.TapClientKey{IfIndex: k.Ifindex, VLAN: uint16(k.Vlan)}
}

// List reads the map. A VM whose device has not the programs that it should have is
// listed with the zero value.
func (c *VMs) List(context.Context) (map[intent.TapClientKey]intent.TapClient, error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	rows, err := c.s.clients()
	if err != nil {
		return nil, err
	}
	busy := map[uint32]bool{} // whether a device has to have programs
	for k, r := range rows {
		busy[k.Ifindex] = busy[k.Ifindex] || !r.has(bpfClientFlagsCLIENT_IDLE)
	}
	sound := map[uint32]bool{}
	for index, programs := range busy {
		if sound[index], err = c.sound(index, programs); err != nil {
			return nil, err
		}
	}
	out := map[intent.TapClientKey]intent.TapClient{}
	for k, r := range rows {
		key := clientKey(k)
		if out[key] = (intent.TapClient{}); sound[k.Ifindex] {
			out[key] = intent.TapClient{Key: key, Scope: intent.VNI(r.Scope), OVN: r.has(bpfClientFlagsCLIENT_OVN), Idle: r.has(bpfClientFlagsCLIENT_IDLE)}
		}
	}
	return out, nil
}

func (r bpfClient) has(f bpfClientFlags) bool { return bpfClientFlags(r.Flags)&f != 0 }

// clients reads the map.
func (s *store) clients() (map[bpfClientKey]bpfClient, error) {
	out := map[bpfClientKey]bpfClient{}
	n, err := pinned.Walk(s.t[bpfMapClientsV2], func(k bpfClientKey, r bpfClient) { out[k] = r })
	s.rows[bpfMapClientsV2] = n
	return out, mapError(bpfMapClientsV2, err)
}

// sound tells whether a device is there, with both programs or with none.
func (c *VMs) sound(ifindex uint32, programs bool) (bool, error) {
	for _, p := range []Program{ClientIn, ClientOut} {
		ok, err := c.attached(p, int(ifindex))
		if errors.As(err, &netlink.LinkNotFoundError{}) {
			return false, nil
		}
		if err != nil || ok != programs {
			return false, err
		}
	}
	return true, nil
}

// Before tells who has balanced the flows of VMs whose rows are about to be wanted for the
// first time. Of others nothing is known.
func (c *VMs) Before(who map[intent.TapClientKey]intent.Before) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	maps.Copy(c.s.lb.before, who)
}

// Apply writes rows, then attaches: first what changes answers.
func (c *VMs) Apply(_ context.Context, rows []reconcile.Row[intent.TapClientKey, intent.TapClient]) []error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	var out results
	for i, r := range rows {
		if err := c.apply(r.Value); err != nil {
			out.set(len(rows), i, fmt.Errorf("VM on device %s: %w", r.Key, err))
		}
	}
	c.s.lb.first = false
	return out
}

func (c *VMs) apply(v intent.TapClient) error {
	if !v.Scope.IsSwitch() {
		return fmt.Errorf("%s is no switch", v.Scope)
	}
	_, err := netlink.LinkByIndex(int(v.Key.IfIndex))
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		// Its number may be another device's next.
		return cmp.Or(c.s.drop(bpfMapClientsV2, clientKernelKey(v.Key)), fmt.Errorf("%w: there is no such device", reconcile.ErrNotReady))
	}
	if err != nil {
		return fmt.Errorf("find device: %w", err)
	}
	row, err := c.s.clientRow(v)
	if err == nil {
		err = c.s.put(bpfMapClientsV2, clientKernelKey(v.Key), row)
	}
	if err == nil {
		delete(c.s.lb.before, v.Key)
	}
	if err == nil && v.Idle {
		bare, err := c.sound(v.Key.IfIndex, false)
		if err == nil && !bare {
			err = c.detachIdle(v.Key.IfIndex)
		}
		return err
	}
	for _, p := range []Program{ClientOut, ClientIn} {
		if err == nil {
			err = c.d.Attach(p, int(v.Key.IfIndex))
		}
	}
	return err
}

// clientRow is the row of a VM. unknown is until when it may have flows that another
// node has balanced, and until that of those that went the other way, in OVN or in eBPF.
func (s *store) clientRow(v intent.TapClient) (bpfClient, error) {
	now, err := monotonic()
	if err != nil {
		return bpfClient{}, err
	}
	row := bpfClient{Scope: uint32(v.Scope), Unknown: 1}
	if v.OVN {
		row.Flags |= uint32(bpfClientFlagsCLIENT_OVN)
	}
	if v.Idle {
		row.Flags |= uint32(bpfClientFlagsCLIENT_IDLE)
	}
	var old bpfClient
	had := s.t[bpfMapClientsV2].Lookup(clientKernelKey(v.Key), &old) == nil && old.Scope == row.Scope
	switch who := s.lb.before[v.Key]; {
	case had:
		row.Unknown, row.Until = old.Unknown, old.Until
		if old.has(bpfClientFlagsCLIENT_OVN) != v.OVN && !old.has(bpfClientFlagsCLIENT_IDLE) && !v.Idle {
			row.Until = now + flowIdle
		}
	case who == intent.BeforeOVN:
		if !v.OVN {
			row.Until = now + flowIdle
		}
	case who == intent.BeforeNode, !v.Idle && !s.lb.first:
		// Also if its switch has no VIPs, as far as is known by now.
		row.Unknown = now + flowIdle
	}
	return row, nil
}

// Delete removes rows, and takes the programs off devices that have none any more.
func (c *VMs) Delete(_ context.Context, keys []intent.TapClientKey) []error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	var out results
	for i, k := range keys {
		if err := c.remove(k); err != nil {
			out.set(len(keys), i, fmt.Errorf("VM on device %s: %w", k, err))
		}
	}
	return out
}

func (c *VMs) remove(k intent.TapClientKey) error {
	delete(c.s.lb.before, k)
	if err := c.s.drop(bpfMapClientsV2, clientKernelKey(k)); err != nil {
		return err
	}
	return c.detachIdle(k.IfIndex)
}

// detachIdle takes the programs off a device none of whose VMs is on a switch with VIPs.
func (c *VMs) detachIdle(ifindex uint32) error {
	rows, err := c.s.clients()
	if err != nil {
		return err
	}
	for k, r := range rows {
		if k.Ifindex == ifindex && !r.has(bpfClientFlagsCLIENT_IDLE) {
			return nil
		}
	}
	for _, p := range []Program{ClientIn, ClientOut} {
		err = errors.Join(err, c.d.Detach(p, int(ifindex)))
	}
	return err
}

// detach takes the programs off the devices that are not Sluice's own.
func (p Plane) detach(dir string) error {
	if p == Fabric {
		return errors.Join(detachUnderlay(dir), detachVTEPGuard(dir))
	}
	// As detachUnderlay.
	return errors.Join(ClientIn.at(dir).UnlinkAll(), ClientOut.at(dir).UnlinkAll())
}
