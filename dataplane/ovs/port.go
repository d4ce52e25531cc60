package ovs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/vswitch"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// The mark of Sluice's port: Port.external_ids:sluice = "bridge".
const (
	keyMark    = "sluice"
	markBridge = "bridge"
)

// modeTrunk is a value of Port.vlan_mode.
const modeTrunk = "trunk"

// deadVLAN is a VLAN that no frame has: IEEE 802.1Q reserves VID 4095.
const deadVLAN = 4095

// errIncomplete: Sluice's port is there and not as it should be.
var errIncomplete = errors.New("incomplete")

// Datapath is the datapath type of a bridge: "netdev" or "system".
func (s *Switch) Datapath(bridge intent.BridgeKey) (string, error) {
	b, err := s.Bridge(bridge)
	return b.DatapathType, err
}

// OurPorts lists Sluice's port of each bridge that has one.
func (s *Switch) OurPorts() (map[intent.BridgeKey]string, error) {
	bridges, err := s.Bridges()
	if err != nil {
		return nil, err
	}
	out := make(map[intent.BridgeKey]string)
	for _, b := range bridges {
		if p, ok := b.ours(); ok {
			out[intent.BridgeKey(b.Name)] = p.Name
		}
	}
	return out, nil
}

// HasPort tells whether any bridge has a port of this name, Sluice's or not.
func (s *Switch) HasPort(name string) (intent.BridgeKey, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.bridges {
		if _, ok := b.port(name); ok {
			return intent.BridgeKey(b.Name), true
		}
	}
	return "", false
}

// EnsurePort makes the device Sluice's port of the bridge, with the default
// flow and no-flood. The device should be down until this has returned.
func (s *Switch) EnsurePort(ctx context.Context, bridge intent.BridgeKey, device string) error {
	return s.ensure(ctx, bridge, device, role{
		marks: map[string]string{keyMark: markBridge},
		is:    func(p Port) bool { return p.Ours },
	})
}

// role is what a port of ours is for: how it is marked, and known by it.
type role struct {
	marks map[string]string
	is    func(Port) bool
}

func (s *Switch) ensure(ctx context.Context, bridge intent.BridgeKey, device string, r role) error {
	b, err := s.Bridge(bridge)
	if err != nil {
		return err
	}
	// First find out whether flows can be written there at all.
	if _, err := s.dump(ctx, b.Name, cookieDefault); err != nil {
		return err
	}
	if err := s.writePort(ctx, b, device, r); err != nil {
		return fmt.Errorf("port %s of bridge %s: %w", device, bridge, err)
	}
	p, err := s.awaitPort(ctx, bridge, device)
	if err != nil {
		return fmt.Errorf("port %s of bridge %s: %w", device, bridge, err)
	}
	if err := s.writeDefaults(ctx, bridge, p); err != nil {
		return err
	}
	return s.setNoFlood(ctx, b.Name, p)
}

func (s *Switch) writePort(ctx context.Context, b Bridge, device string, r role) error {
	p, there := b.port(device)
	if there && !r.is(p) {
		return reconcile.ErrForeign
	}
	if other, ok := b.find(r.is); ok && other.Name != device {
		if err := s.remove(ctx, intent.BridgeKey(b.Name), r); err != nil {
			return err
		}
		var err error
		if b, err = s.Bridge(intent.BridgeKey(b.Name)); err != nil {
			return err
		}
	}
	mode := modeTrunk
	row := &vswitch.Port{
		UUID: p.portUUID, Name: device, Trunks: []int{deadVLAN}, VLANMode: &mode, ExternalIDs: r.marks,
	}
	if there {
		if p.failClosed {
			return nil
		}
		_, err := s.config.Transact(ctx, ovsdb.Update(row, "trunks", "vlan_mode"))
		return err
	}
	row.Interfaces = []string{"sluice_interface"}
	_, err := s.config.Transact(ctx,
		ovsdb.Comment("sluice: port "+device+" of bridge "+b.Name),
		ovsdb.Insert(&vswitch.Interface{Name: device, ExternalIDs: row.ExternalIDs}, "sluice_interface", "name", "external_ids"),
		ovsdb.Insert(row, "sluice_port", "name", "interfaces", "external_ids", "trunks", "vlan_mode"),
		ovsdb.AddMembers(vswitch.BridgeTable, b.uuid, "ports", ovsdb.UUID("sluice_port")))
	return err
}

func (s *Switch) awaitPort(ctx context.Context, bridge intent.BridgeKey, device string) (Port, error) {
	var p Port
	err := s.await(ctx, func() bool {
		b, err := s.Bridge(bridge)
		if err != nil {
			return false
		}
		p, _ = b.port(device)
		return p.Number != 0 || p.Error != ""
	})
	if err == nil && p.Number == 0 {
		err = fmt.Errorf("ovs-vswitchd: %s", p.Error)
	}
	return p, err
}

func defaultFlow(p Port) flow {
	return flow{match: match{priority: priorityDefault, inPort: p.Number, vlan: anyVLAN}}
}

// writeDefaults gives every port of ours its default flow, and takes away those of
// ports that are there no more. p has its number already.
func (s *Switch) writeDefaults(ctx context.Context, bridge intent.BridgeKey, p Port) error {
	d, err := s.dumpAll(ctx, string(bridge), cookieDefault)
	if err != nil {
		return err
	}
	b, err := s.Bridge(bridge)
	if err != nil {
		return err
	}
	want := []flow{defaultFlow(p)}
	for _, o := range b.Ports {
		if o.marked() && o.Number != 0 && o.Number != p.Number {
			want = append(want, defaultFlow(o))
		}
	}
	if p.Number == 0 {
		want = want[1:]
	}
	if err := d.collision(want); err != nil {
		return fmt.Errorf("default flow of bridge %s: %w", bridge, err)
	}
	var lines []string
	for _, m := range d.unknown {
		lines = append(lines, deleteLine(cookieDefault, m))
	}
	for _, f := range d.flows {
		if !slices.Contains(want, f) {
			lines = append(lines, deleteLine(cookieDefault, f.match.format()))
		}
	}
	for _, f := range want {
		if !slices.Contains(d.flows, f) {
			lines = append(lines, addLine(cookieDefault, f))
		}
	}
	return s.bundle(ctx, string(bridge), lines)
}

// CheckPort is nil if the bridge has the device as EnsurePort leaves it.
func (s *Switch) CheckPort(ctx context.Context, bridge intent.BridgeKey, device string) error {
	return s.check(ctx, bridge, device, func(p Port) bool { return p.Ours })
}

func (s *Switch) check(ctx context.Context, bridge intent.BridgeKey, device string, is func(Port) bool) error {
	b, err := s.Bridge(bridge)
	if err != nil {
		return err
	}
	p, ok := b.port(device)
	if !ok || !is(p) || !p.failClosed || p.Number == 0 {
		return fmt.Errorf("port %s of bridge %s: %w", device, bridge, errIncomplete)
	}
	d, err := s.dump(ctx, b.Name, cookieDefault)
	if err != nil {
		return err
	}
	named, noFlood, err := s.noFlood(ctx, b.Name, p)
	if err != nil {
		return err
	}
	if !named || !noFlood || len(d.unknown) > 0 || !slices.Contains(d.flows, defaultFlow(p)) || b.strays(d.flows) {
		return fmt.Errorf("default flow of bridge %s: %w", bridge, errIncomplete)
	}
	return nil
}

// strays tells whether a default flow is of no port of ours.
func (b Bridge) strays(defaults []flow) bool {
	return slices.ContainsFunc(defaults, func(f flow) bool {
		return !slices.ContainsFunc(b.Ports, func(p Port) bool { return p.marked() && defaultFlow(p) == f })
	})
}

// RemovePort removes Sluice's port from the bridge, and then its default flow,
// which has to outlive it. A bridge or port that is not there is no error, and
// neither is an ovs-vswitchd that does not run.
func (s *Switch) RemovePort(ctx context.Context, bridge intent.BridgeKey) error {
	return s.remove(ctx, bridge, role{is: func(p Port) bool { return p.Ours }})
}

func (s *Switch) remove(ctx context.Context, bridge intent.BridgeKey, r role) error {
	b, err := s.Bridge(bridge)
	if errors.Is(err, errNoBridge) {
		return nil
	}
	if err != nil {
		return err
	}
	if p, ok := b.find(r.is); ok {
		if _, err := s.config.Transact(ctx,
			ovsdb.Comment("sluice: port "+p.Name+" leaves bridge "+b.Name),
			ovsdb.RemoveMembers(vswitch.BridgeTable, b.uuid, "ports", ovsdb.UUID(p.portUUID))); err != nil {
			return fmt.Errorf("removing port %s from bridge %s: %w", p.Name, bridge, err)
		}
		err := s.await(ctx, func() bool {
			now, err := s.Bridge(bridge)
			if err != nil {
				return true
			}
			_, there := now.find(r.is)
			return !there
		})
		if err != nil {
			return fmt.Errorf("port %s of bridge %s has not gone: %w", p.Name, bridge, err)
		}
		if err := s.awaitGone(ctx, b.Name, p); err != nil {
			return err
		}
	}
	err = s.writeDefaults(ctx, bridge, Port{})
	if errors.Is(err, errNoBridge) || err != nil && ctx.Err() == nil && !s.reachable(b.Name) {
		return nil // without ovs-vswitchd there are no flows
	}
	return err
}

// awaitGone waits until ovs-vswitchd has let go of a port that the database no
// longer has: one that comes back before would be the old one to it.
func (s *Switch) awaitGone(ctx context.Context, bridge string, p Port) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	for s.reachable(bridge) {
		named, _, err := s.noFlood(ctx, bridge, p)
		if err == nil && !named {
			return nil
		}
		if !loop.Sleep(ctx, retryPause) {
			return fmt.Errorf("ovs-vswitchd still has port %s of bridge %s: %w", p.Name, bridge, errors.Join(err, ctx.Err()))
		}
	}
	return nil
}
