package ebpf

import (
	"context"
	"encoding/binary"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/loop"
)

// What of bpf/lib/types.h the compiler does not tell: FLOW_FRONT.
const (
	flowFrontBits  = 1 << 19
	flowFrontWords = flowFrontBits / frontWord
	// flowFrontState is the word of enum flow_front_state.
	flowFrontState = 2 * flowFrontWords
)

// flowBit is flow_bit of bpf/lib/flow.h, for a row of flows.
func flowBit(k bpfFlowKey, f bpfFlow) uint32 {
	client, port := k.Src, uint16(k.Ports)
	switch bpfFlowKind(f.Kind) {
	case bpfFlowKindFLOW_TO_CLIENT, bpfFlowKindFLOW_DIRECT:
		client, port = k.Dst, uint16(k.Ports>>16)
	}
	return frontHash(uint64(port), binary.NativeEndian.Uint64(client[:]), binary.NativeEndian.Uint64(client[8:])) % flowFrontBits
}

// SweepFlowFront brings the map flow_front up to date with the map flows, of which programs
// and SweepFlows remove rows, but no bits. Programs read it from the first sweep on. There is
// none before Replaced: rows that programs write meanwhile may be in another map, and are copied
// later, without their bits. A sweep takes some seconds; one that is ended by its context has
// the next one begin anew. One call at a time.
func (d *Dataplane) SweepFlowFront(ctx context.Context) error {
	if !d.Replaced() {
		return nil
	}
	front, err := shareWords(d.store.t[bpfMapFlowFrontV1])
	if err != nil {
		return mapError(bpfMapFlowFrontV1, err)
	}
	defer runtime.KeepAlive(front)
	const second, whole = uint64(bpfFlowFrontStateFLOW_FRONT_SECOND), uint64(bpfFlowFrontStateFLOW_FRONT_WHOLE)
	state := &front.words[flowFrontState]
	old, fresh := front.words[:flowFrontWords], front.words[flowFrontWords:flowFrontState]
	if atomic.LoadUint64(state)&second != 0 {
		old, fresh = fresh, old
	}
	if slices.ContainsFunc(fresh, func(word uint64) bool { return word != 0 }) {
		// A sweep has not come to its end, and there are rows whose bits are here alone.
		atomic.AndUint64(state, ^whole)
		if err := rest(ctx); err != nil {
			return err
		}
		clear(fresh)
	}
	atomic.StoreUint64(state, atomic.LoadUint64(state)^second)
	if err := rest(ctx); err != nil { // programs that run set bits in the old generation
		return err
	}
	_, err = pinned.Walk(d.store.t[bpfMapFlowsV4], func(k bpfFlowKey, f bpfFlow) {
		bit := flowBit(k, f)
		atomic.OrUint64(&fresh[bit/frontWord], 1<<(bit%frontWord))
	})
	if err != nil {
		return mapError(bpfMapFlowsV4, err)
	}
	atomic.OrUint64(state, whole)
	if err := rest(ctx); err != nil { // programs that run may have read the new generation before it was whole
		return err
	}
	clear(old)
	return nil
}

// rest waits until programs that run now have ended.
func rest(ctx context.Context) error {
	loop.Sleep(ctx, restTime)
	return ctx.Err()
}
