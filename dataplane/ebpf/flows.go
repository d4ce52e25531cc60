package ebpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/maglev"
)

// FlowKey is what packets of one direction of a flow have in common.
type FlowKey struct {
	VNI      intent.VNI
	Protocol intent.Protocol
	Src, Dst netip.AddrPort
	// Tap is that of the client, on a switch; zero in a VRF.
	Tap intent.TapClientKey
}

// Flow is one direction of what the maps sessions and flows know.
type Flow struct {
	Key FlowKey
	// ToVIP: the packets are a client's, and go to Backend. Otherwise they are a backend's,
	// and their source becomes the VIP; or they are of a connection of its own (Direct), or a
	// client's that go to OVN (OVN).
	ToVIP, Direct, OVN bool
	// AllPorts: ToVIP, of a VIP of all ports.
	AllPorts bool
	// Becomes is the address and port that are written: the backend's, or the VIP's.
	Becomes netip.AddrPort
	// Open: more than the first packet was seen. Ending: a FIN or RST was.
	Open, Ending bool
	// Idle is for how long no packet was seen.
	Idle time.Duration
}

// How long flows are known without a packet, other than open ones of TCP (intent.FlowIdle):
// UDP_IDLE and TCP_TRANSITORY of bpf/lib/flow.h.
const (
	idleUDP        = 120 * time.Second
	idleTransitory = 240 * time.Second
)

// forgotten tells whether the programs take a packet for one of a flow that they do not know.
func (f Flow) forgotten() bool {
	switch {
	case f.Key.Protocol == intent.UDP:
		return f.Idle > idleUDP
	case f.Open && !f.Ending:
		return f.Idle > intent.FlowIdle
	}
	return f.Idle > idleTransitory
}

func kernelFlowKey(k FlowKey) bpfFlowKey {
	return bpfFlowKey{
		Src: k.Src.Addr().As16(), Dst: k.Dst.Addr().As16(), Scope: uint32(k.VNI), Proto: uint16(k.Protocol),
		Ports:   uint32(bePort(k.Dst.Port()))<<16 | uint32(bePort(k.Src.Port())),
		Ifindex: k.Tap.IfIndex, Vlan: k.Tap.VLAN,
	}
}

func flowKeyOf(k bpfFlowKey) FlowKey {
	return FlowKey{
		VNI: intent.VNI(k.Scope), Protocol: intent.Protocol(k.Proto),
		Src: netip.AddrPortFrom(from16(k.Src), bePort(uint16(k.Ports))), Dst: netip.AddrPortFrom(from16(k.Dst), bePort(uint16(k.Ports>>16))),
		Tap: intent.TapClientKey{IfIndex: k.Ifindex, VLAN: k.Vlan},
	}
}

func flowOf(k bpfFlowKey, f bpfFlow, now uint32) Flow {
	out := Flow{
		Key: flowKeyOf(k), ToVIP: bpfFlowKind(f.Kind) == bpfFlowKindFLOW_TO_BACKEND, Direct: bpfFlowKind(f.Kind) == bpfFlowKindFLOW_DIRECT, OVN: bpfFlowKind(f.Kind) == bpfFlowKindFLOW_OVN,
		Open: bpfFlowState(f.State)&bpfFlowStateFLOW_OPEN != 0, Ending: bpfFlowState(f.State)&bpfFlowStateFLOW_ENDING != 0,
		Idle: age(now, f.Seen),
	}
	if !out.Direct && !out.OVN {
		port := f.Port
		out.AllPorts = out.ToVIP && port == 0
		if port == 0 { // of a VIP of all ports: it stays
			port = uint16(k.Ports >> 16)
		}
		out.Becomes = netip.AddrPortFrom(from16(f.Addr), bePort(port))
	}
	return out
}

func sessionKeyOf(k FlowKey) bpfSessionKey {
	return bpfSessionKey{
		Client: k.Src.Addr().As16(), Port: bePort(k.Src.Port()), Scope: uint32(k.VNI), Proto: uint16(k.Protocol),
		Ifindex: k.Tap.IfIndex, Vlan: k.Tap.VLAN,
	}
}

// sessionOf is the client's direction of a session.
func sessionOf(k bpfSessionKey, s bpfSession, now uint32) Flow {
	port := s.Port
	if port == 0 { // of a VIP of all ports: it stays
		port = s.VipPort
	}
	state := bpfFlowState(s.State[bpfSessionEndCLIENT_END])
	return Flow{
		Key: FlowKey{
			VNI: intent.VNI(k.Scope), Protocol: intent.Protocol(k.Proto),
			Src: netip.AddrPortFrom(from16(k.Client), bePort(k.Port)), Dst: netip.AddrPortFrom(from16(s.Vip), bePort(s.VipPort)),
			Tap: intent.TapClientKey{IfIndex: k.Ifindex, VLAN: k.Vlan},
		},
		ToVIP: true, AllPorts: s.Port == 0, Becomes: netip.AddrPortFrom(from16(s.Backend), bePort(port)),
		Open: state&bpfFlowStateFLOW_OPEN != 0, Ending: state&bpfFlowStateFLOW_ENDING != 0, Idle: age(now, s.Seen),
	}
}

// sessionAnswers is the backend's direction of a session.
func sessionAnswers(k bpfSessionKey, s bpfSession, now uint32) Flow {
	f, state := sessionOf(k, s, now), bpfFlowState(s.State[bpfSessionEndBACKEND_END])
	f.ToVIP, f.AllPorts = false, false
	f.Key.Src, f.Key.Dst, f.Becomes = f.Becomes, f.Key.Src, f.Key.Dst
	f.Open, f.Ending = state&bpfFlowStateFLOW_OPEN != 0, state&bpfFlowStateFLOW_ENDING != 0
	return f
}

// sessionOver is session_over of bpf/lib/session.h.
func sessionOver(k bpfSessionKey, s bpfSession, now uint32) bool {
	client, backend := sessionOf(k, s, now), sessionAnswers(k, s, now)
	return client.Ending && backend.Ending && client.Idle > closedRest || client.forgotten() && backend.forgotten()
}

// age is for how long a row was not seen. A processor may have seen it a second later than now.
func age(now, seen uint32) time.Duration { return time.Duration(max(0, int32(now-seen))) * time.Second }

// monotonic is the programs' clock, in seconds.
func monotonic() (uint32, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC_COARSE, &now); err != nil {
		return 0, fmt.Errorf("read the clock: %w", err)
	}
	return uint32(now.Sec), nil
}

// Flow finds what is known of a client's packets; false if nothing is. On a switch it is any
// tap's for a key without one.
func (r *Reader) Flow(k FlowKey) (Flow, bool, error) {
	if k.VNI.IsSwitch() && k.Tap == (intent.TapClientKey{}) {
		found, err := r.Flows(1, func(f Flow) bool {
			f.Key.Tap = intent.TapClientKey{}
			return f.Key == k
		})
		if err != nil || len(found) == 0 {
			return Flow{}, false, err
		}
		return found[0], true, nil
	}
	now, err := monotonic()
	if err != nil {
		return Flow{}, false, err
	}
	var s bpfSession
	client := sessionKeyOf(k)
	err = r.t[bpfMapSessionsV1].Lookup(client, &s)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return Flow{}, false, mapError(bpfMapSessionsV1, err)
	}
	if out := sessionOf(client, s, now); err == nil && out.Key == k && !out.forgotten() {
		return out, true, nil
	}
	var f bpfFlow
	key := kernelFlowKey(k)
	err = r.t[bpfMapFlowsV4].Lookup(key, &f)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return Flow{}, false, nil
	}
	out := flowOf(key, f, now)
	return out, err == nil && !out.forgotten(), mapError(bpfMapFlowsV4, err)
}

// Kept finds the backend that the client of a flow to a VIP had last, and for how long it
// has begun no other. The zero value is none; the port of a VIP of all ports is 0. On a
// switch it is any tap's for a key without one.
func (r *Reader) Kept(k FlowKey) (netip.AddrPort, time.Duration, error) {
	now, err := monotonic()
	if err != nil {
		return netip.AddrPort{}, 0, err
	}
	k.Src = netip.AddrPortFrom(k.Src.Addr(), 0)
	row := kernelFlowKey(k)
	if k.VNI.IsSwitch() && k.Tap == (intent.TapClientKey{}) {
		_, err = pinned.Walk(r.t[bpfMapAffinityV3], func(one bpfFlowKey, _ bpfFlow) {
			of := flowKeyOf(one)
			if of.Tap = (intent.TapClientKey{}); of == k {
				row = one
			}
		})
	}
	var f bpfFlow
	if err == nil {
		err = r.t[bpfMapAffinityV3].Lookup(row, &f)
	}
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return netip.AddrPort{}, 0, nil
	}
	if err != nil {
		return netip.AddrPort{}, 0, mapError(bpfMapAffinityV3, err)
	}
	return netip.AddrPortFrom(from16(f.Addr), bePort(f.Port)), age(now, f.Seen), nil
}

// Flows reads the flows that match, at most so many.
func (r *Reader) Flows(most int, match func(Flow) bool) ([]Flow, error) {
	var out []Flow
	err := r.eachFlow(func(f Flow) {
		if len(out) < most && match(f) {
			out = append(out, f)
		}
	})
	return out, err
}

// eachFlow reads the flows that are known.
func (r *Reader) eachFlow(each func(Flow)) error {
	now, err := monotonic()
	if err != nil {
		return err
	}
	known := func(f Flow) {
		if !f.forgotten() {
			each(f)
		}
	}
	_, err = pinned.Walk(r.t[bpfMapSessionsV1], func(k bpfSessionKey, v bpfSession) {
		known(sessionOf(k, v, now))
		known(sessionAnswers(k, v, now))
	})
	if err != nil {
		return mapError(bpfMapSessionsV1, err)
	}
	_, err = pinned.Walk(r.t[bpfMapFlowsV4], func(k bpfFlowKey, v bpfFlow) { known(flowOf(k, v, now)) })
	return mapError(bpfMapFlowsV4, err)
}

// FlowTarget is where flows go.
type FlowTarget struct {
	VIP     intent.VIPKey // with the flows' port, also where the VIP has none
	Backend netip.AddrPort
}

// FlowCounts counts the flows to VIPs that are known and do not end.
func (r *Reader) FlowCounts() (map[FlowTarget]uint32, error) {
	out := map[FlowTarget]uint32{}
	err := r.eachFlow(func(f Flow) {
		if f.ToVIP && !f.Ending {
			out[FlowTarget{intent.VIPKey{VNI: f.Key.VNI, Protocol: f.Key.Protocol, Addr: f.Key.Dst.Addr(), Port: f.Key.Dst.Port()}, f.Becomes}]++
		}
	})
	return out, err
}

// TableOf says what is in the table of a VIP: a hash that is equal on two nodes exactly if
// their tables lead all flows alike, and how many slots lead to each backend. Without a
// backend that gets new flows the hash is 0.
func TableOf(v intent.VIP) (hash uint64, slots map[netip.AddrPort]uint32, err error) {
	list, place := maglevBackends(v.Key.Protocol, v.Backends)
	t, err := maglev.Build(list, int(v.Slots))
	if errors.Is(err, maglev.ErrNoBackend) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	all := v.Backends.All()
	slots = map[netip.AddrPort]uint32{}
	for _, index := range t.Slots {
		b := all[place[t.Keys[index]]]
		slots[netip.AddrPortFrom(b.Addr, b.Port)]++
	}
	return t.Hash(), slots, nil
}

// Choice is the backend that a flow to a VIP begins with, on every node.
type Choice struct {
	// Slot is its place in the VIP's table.
	Slot    uint32
	Backend intent.Backend
}

// Choose is what the programs do with a flow that is not known. It is false if no backend
// gets new flows.
func Choose(v intent.VIP, client, vip netip.AddrPort) (Choice, bool, error) {
	words, err := slotWords(tableKey{v.Key.VNI, v.Key.Protocol, v.Slots, v.Backends})
	if err != nil {
		return Choice{}, false, err
	}
	slot := flowHash(v.Key.Protocol, client, vip, v.ByAddress) % v.Slots
	number := uint16(words[slot/4] >> (slot % 4 * 16))
	all := v.Backends.All()
	if int(number) >= len(all) {
		return Choice{Slot: slot}, false, nil
	}
	return Choice{slot, all[number]}, true, nil
}

// flowHash is vip_hash of bpf/lib/balance.h.
func flowHash(p intent.Protocol, client, vip netip.AddrPort, byAddress bool) uint32 {
	h := uint64(0x9e3779b97f4a7c15)
	mix := func(word uint64) {
		h = (h ^ word) * 0xff51afd7ed558ccd
		h ^= h >> 32
	}
	for _, a := range []netip.Addr{client.Addr(), vip.Addr()} {
		b := a.As16()
		mix(binary.NativeEndian.Uint64(b[:]))
		mix(binary.NativeEndian.Uint64(b[8:]))
	}
	if !byAddress {
		mix(uint64(p)<<32 | uint64(bePort(vip.Port()))<<16 | uint64(bePort(client.Port())))
	}
	return uint32(h >> 16)
}
