package ebpf

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"unsafe"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// Gateways drives the maps gateways, entries and names.
type Gateways struct{ s *store }

// Gateways is the driver of the table Gateways.
func (d *Dataplane) Gateways() *Gateways { return &Gateways{d.store} }

// maxPortName is the longest logical port name that a row of names holds.
const maxPortName = len(bpfGatewayName{}.Port)

// List reads the maps. A gateway whose device is another one by now, or has another MTU
// where that counts, or whose entry was cleared when a change of it failed, is listed with
// the zero value.
func (g *Gateways) List(context.Context) (map[intent.GatewayKey]intent.Gateway, error) {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	out := map[intent.GatewayKey]intent.Gateway{}
	err := g.s.eachGateway(func(key intent.GatewayKey, row bpfGateway, e bpfEntry, gw intent.Gateway) {
		port, ok := g.s.bridges.Port(gw.Key.Bridge)
		automatic := e.Flags&uint8(bpfEntryFlagsENTRY_MTU_OF_DEVICE) != 0
		if !ok || port.IfIndex != e.Ifindex || e.Vni != row.Vni || gw.Key != key || automatic && g.s.mtuOf(port, gw) != e.Mtu {
			gw = intent.Gateway{}
		}
		out[key] = gw
	})
	return out, err
}

// eachGateway reads the gateways with their entries and names, under the keys by which the
// programs find them.
func (s *store) eachGateway(each func(intent.GatewayKey, bpfGateway, bpfEntry, intent.Gateway)) error {
	var first error
	n, err := pinned.Walk(s.t[bpfMapGatewaysV1], func(k bpfGatewayKey, row bpfGateway) {
		e, name, err := s.readEntry(row.Entry)
		if err != nil {
			first = errors.Join(first, fmt.Errorf("entry %d: %w", row.Entry, err))
			return
		}
		gw := gatewayOf(e, name)
		each(intent.GatewayKey{Bridge: gw.Key.Bridge, VLAN: k.Vlan, MAC: k.Mac}, row, e, gw)
	})
	s.rows[bpfMapGatewaysV1] = n
	return errors.Join(first, mapError(bpfMapGatewaysV1, err))
}

func (s *store) readEntry(row uint32) (e bpfEntry, name bpfGatewayName, err error) {
	if err := s.t[bpfMapEntriesV1].Lookup(row, &e); err != nil {
		return e, name, mapError(bpfMapEntriesV1, err)
	}
	err = s.t[bpfMapNamesV1].Lookup(row, &name)
	return e, name, mapError(bpfMapNamesV1, err)
}

func gatewayOf(e bpfEntry, name bpfGatewayName) intent.Gateway {
	g := intent.Gateway{
		Key:         intent.GatewayKey{Bridge: intent.BridgeKey(fromChars(name.Bridge[:])), VLAN: e.Vlan, MAC: e.Mac},
		VNI:         intent.VNI(e.Vni),
		Kind:        intent.GatewayKind(e.Kind),
		LogicalPort: fromChars(name.Port[:min(int(name.PortLen), maxPortName)]),
		Addr4:       optional4(e.Addr4), ICMPSource4: optional4(e.Icmp4),
		Addr6: optional6(e.Addr6), ICMPSource6: optional6(e.Icmp6),
	}
	if e.Flags&uint8(bpfEntryFlagsENTRY_MTU_OF_DEVICE) == 0 {
		g.MTU = e.Mtu
	}
	return g
}

func optional4(v uint32) netip.Addr {
	if v == 0 {
		return netip.Addr{}
	}
	return fromBE32(v)
}

func optional6(b [16]byte) netip.Addr {
	if b == [16]byte{} {
		return netip.Addr{}
	}
	return netip.AddrFrom16(b)
}

// fromChars reads C characters up to the first NUL.
func fromChars(c []int8) string {
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(c))), len(c))
	for i, x := range b {
		if x == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

func toChars(to []int8, s string) {
	for i := range min(len(to), len(s)) {
		to[i] = int8(s[i])
	}
}

// entryOf checks a gateway and makes its rows.
func (s *store) entryOf(g intent.Gateway) (e bpfEntry, name bpfGatewayName, err error) {
	port, ok := s.bridges.Port(g.Key.Bridge)
	switch {
	case !g.VNI.ValidVRF():
		return e, name, fmt.Errorf("VNI %d is outside of 1..%d", g.VNI, intent.MaxVNI)
	case g.Key.MAC.IsZero() || g.Key.MAC[0]&1 != 0:
		return e, name, fmt.Errorf("MAC %s is not a unicast address", g.Key.MAC)
	case g.Key.VLAN > 4094:
		return e, name, fmt.Errorf("VLAN %d is outside of 0..4094", g.Key.VLAN)
	case len(g.Key.Bridge) >= len(name.Bridge):
		return e, name, fmt.Errorf("the bridge's name is longer than %d bytes", len(name.Bridge)-1)
	case len(g.LogicalPort) > maxPortName:
		return e, name, fmt.Errorf("the logical port's name is longer than %d bytes", maxPortName)
	case !ok || port.IfIndex == 0:
		return e, name, fmt.Errorf("for the device into bridge %s: %w", g.Key.Bridge, reconcile.ErrNotReady)
	}
	e = bpfEntry{Vni: uint32(g.VNI), Ifindex: port.IfIndex, Mac: g.Key.MAC, Vlan: g.Key.VLAN, Mtu: g.MTU, Kind: uint8(g.Kind)}
	if g.MTU == 0 {
		e.Mtu, e.Flags = s.mtuOf(port, g), uint8(bpfEntryFlagsENTRY_MTU_OF_DEVICE)
	}
	for _, f := range []struct {
		a   netip.Addr
		to4 *uint32
		to6 *[16]byte
	}{{g.Addr4, &e.Addr4, nil}, {g.ICMPSource4, &e.Icmp4, nil}, {g.Addr6, nil, &e.Addr6}, {g.ICMPSource6, nil, &e.Icmp6}} {
		switch {
		case !f.a.IsValid():
		case f.a.IsUnspecified() || f.a.Is4() != (f.to4 != nil):
			return e, name, fmt.Errorf("address %s is not of a host or of the other family", f.a)
		case f.to4 != nil:
			*f.to4 = be32(f.a)
		default:
			*f.to6 = f.a.As16()
		}
	}
	toChars(name.Bridge[:], string(g.Key.Bridge))
	toChars(name.Port[:], g.LogicalPort)
	name.PortLen = uint16(len(g.LogicalPort))
	return e, name, nil
}

// mtuOf is the MTU of a gateway that has none of its own. The pair into the bridge takes
// more than the network behind it, which would lose the packet without a word.
func (s *store) mtuOf(port Port, g intent.Gateway) uint16 {
	if g.VNI == intent.DefaultVRF && s.networks != nil {
		if network := s.networks(g.Key.Bridge); network != 0 {
			return min(network, port.MTU)
		}
	}
	return port.MTU
}

// Apply writes rows.
func (g *Gateways) Apply(_ context.Context, rows []reconcile.Row[intent.GatewayKey, intent.Gateway]) []error {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	var out results
	for i, r := range rows {
		if err := g.s.applyGateway(r.Value); err != nil {
			out.set(len(rows), i, fmt.Errorf("gateway %s: %w", r.Key, err))
		}
	}
	return out
}

func (s *store) applyGateway(g intent.Gateway) error {
	e, name, err := s.entryOf(g)
	if err != nil {
		return reconcile.Unchanged(err)
	}
	if err := s.changeGateway(g, e, name); err != nil {
		return errors.Join(err, s.silence(g))
	}
	return nil
}

func (s *store) changeGateway(g intent.Gateway, e bpfEntry, name bpfGatewayName) (err error) {
	old, had := s.live[g.Key]
	if err := s.leave(g.Key, old); err != nil {
		return err
	}
	row, kept := old.row, had && old.vni == g.VNI
	if !kept {
		if row, _, err = s.entries.acquire(entryKey{g.Key, g.VNI}); err != nil {
			return fmt.Errorf("entries: %w", err)
		}
		if err = s.setRow(bpfMapAskedV1, row, bpfAsked{}); err != nil {
			return errors.Join(err, s.releaseEntry(row))
		}
	}
	if err := s.writeGateway(row, e, name); err != nil {
		if !kept {
			err = errors.Join(err, s.releaseEntry(row))
		}
		return err
	}
	now := liveGateway{row: row, vni: g.VNI, ifindex: e.Ifindex}
	s.live[g.Key] = now
	switch {
	case !had:
		s.leaving[g.Key] = now // what it was is to be inherited
	case now != old:
		s.leaving[g.Key] = old
	}
	return s.leave(g.Key, now)
}

// silence clears what a gateway was in another VRF, after its change has failed: the
// routes of that VRF lead into it, and it may be another tenant's by now. The next try
// does the rest.
func (s *store) silence(g intent.Gateway) error {
	var err error
	for _, was := range []liveGateway{s.live[g.Key], s.leaving[g.Key]} {
		if was.row != 0 && was.vni != g.VNI {
			err = errors.Join(err, s.setRow(bpfMapEntriesV1, was.row, bpfEntry{}))
		}
	}
	return err
}

// leave ends what a gateway was before it became now, also where an earlier try did
// not come to the end.
func (s *store) leave(k intent.GatewayKey, now liveGateway) error {
	old, ok := s.leaving[k]
	if !ok {
		return nil
	}
	if old.ifindex != now.ifindex {
		if err := s.drop(bpfMapGatewaysV1, gatewayKernelKey(k, old.ifindex)); err != nil {
			return err
		}
	}
	if old.row != now.row {
		if err := s.moveDefaults(old.row, k); err != nil {
			return err
		}
		if err := s.retireEntry(old.row, k, now.row); err != nil {
			return err
		}
		// A retry does not do this again, but what follows.
		s.leaving[k] = now
	}
	if err := s.inherit(k, now.row); err != nil {
		return err
	}
	delete(s.leaving, k)
	return nil
}

// inherit gives a gateway that is new in service what is still served behind
// retired entries of its own, and the routes of the default VRF that lead to it.
func (s *store) inherit(k intent.GatewayKey, row uint32) error {
	if len(s.entries.keys) == len(s.live) {
		return nil
	}
	var retired []uint32
	for other, e := range s.entries.keys {
		if e.gateway == k && other != row {
			retired = append(retired, other)
		}
	}
	var err error
	for _, other := range retired {
		err = errors.Join(err, s.moveDefaults(other, k), s.moveServed(other, row))
	}
	return err
}

// writeGateway writes what refers last, so that a crash leaves nothing dangling.
func (s *store) writeGateway(row uint32, e bpfEntry, name bpfGatewayName) error {
	if err := s.put(bpfMapNamesV1, row, name); err != nil {
		return err
	}
	if err := s.setRow(bpfMapEntriesV1, row, e); err != nil {
		return err
	}
	k := bpfGatewayKey{Ifindex: e.Ifindex, Mac: e.Mac, Vlan: e.Vlan}
	if err := s.put(bpfMapGatewaysV1, k, bpfGateway{Entry: row, Vni: e.Vni}); err != nil {
		return err
	}
	if err := s.frontGateway(k, bpfGateway{Entry: row, Vni: e.Vni}); err != nil {
		return err
	}
	return s.put(bpfMapSpeakersV1, e.Vni, row)
}

func gatewayKernelKey(k intent.GatewayKey, ifindex uint32) bpfGatewayKey {
	return bpfGatewayKey{Ifindex: ifindex, Mac: k.MAC, Vlan: k.VLAN}
}

// retireEntry takes a row out of service. What is served behind the gateway
// moves to its new row, if there is one (0: none).
func (s *store) retireEntry(row uint32, k intent.GatewayKey, to uint32) error {
	vni := s.entries.keys[row].vni
	// First, since until then the routes of the old VRF lead to the gateway.
	if err := s.setRow(bpfMapEntriesV1, row, bpfEntry{}); err != nil {
		return err
	}
	if to != 0 {
		if err := s.moveServed(row, to); err != nil {
			return fmt.Errorf("move what is served behind %s: %w", k, err)
		}
	}
	if err := s.replaceSpeaker(vni, row); err != nil {
		return err
	}
	return s.releaseEntry(row)
}

// replaceSpeaker picks another gateway of the VRF as the source of errors.
func (s *store) replaceSpeaker(vni intent.VNI, row uint32) error {
	var now uint32
	err := s.t[bpfMapSpeakersV1].Lookup(uint32(vni), &now)
	if errors.Is(err, ebpf.ErrKeyNotExist) || err == nil && now != row {
		return nil
	}
	if err != nil {
		return mapError(bpfMapSpeakersV1, err)
	}
	for _, l := range s.live {
		if l.vni == vni && l.row != row {
			return s.put(bpfMapSpeakersV1, uint32(vni), l.row)
		}
	}
	return s.drop(bpfMapSpeakersV1, uint32(vni))
}

// releaseEntry gives a reference back. The last one goes after the row is
// cleared, so that one that fails is still there for the next try.
func (s *store) releaseEntry(row uint32) error {
	if s.entries.refs[row] <= 1 {
		if err := s.clearEntry(row); err != nil {
			return err
		}
	}
	s.entries.release(row)
	return nil
}

func (s *store) clearEntry(row uint32) error {
	if err := s.setRow(bpfMapEntriesV1, row, bpfEntry{}); err != nil {
		return err
	}
	return s.drop(bpfMapNamesV1, row)
}

// Delete removes rows. An entry that routes or served rows still refer to stays
// reserved until they are gone.
func (g *Gateways) Delete(_ context.Context, keys []intent.GatewayKey) []error {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	var out results
	for i, k := range keys {
		if err := g.s.deleteGateway(k); err != nil {
			out.set(len(keys), i, fmt.Errorf("gateway %s: %w", k, err))
		}
	}
	return out
}

func (s *store) deleteGateway(k intent.GatewayKey) error {
	l, ok := s.live[k]
	if !ok {
		return nil
	}
	if err := s.leave(k, l); err != nil {
		return err
	}
	if err := s.drop(bpfMapGatewaysV1, gatewayKernelKey(k, l.ifindex)); err != nil {
		return err
	}
	if err := s.retireEntry(l.row, k, 0); err != nil {
		return err
	}
	delete(s.live, k)
	return nil
}
