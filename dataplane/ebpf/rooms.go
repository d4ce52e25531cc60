package ebpf

import (
	"runtime"
	"sync/atomic"

	"github.com/cilium/ebpf"
)

// rooms are the rows of the map of that name: how full each map of flows is, by its name.
var rooms = map[string]bpfFlowMap{bpfMapSessionsV1: bpfFlowMapMAP_SESSIONS, bpfMapFlowsV4: bpfFlowMapMAP_FLOWS}

const roomWords = 2 // struct room

// keptFree are the free rows that the kernel lets a processor keep for itself (LOCAL_FREE_TARGET).
const keptFree = 128

// evictsFrom is a number of rows from which on a map of flows may evict rows: it does so while
// processors keep free ones.
func evictsFrom(size, processors uint32) uint64 {
	return max(uint64(size)/2, uint64(max(0, int64(size)-int64(size)/8-keptFree*int64(processors))))
}

// counting is a count of the rows of a map, while programs write more.
type counting struct {
	shared *sharedWords
	rows   *uint64
	before uint64
}

// beginCount begins to count the rows of a map of flows, and says how many it takes.
func (d *Dataplane) beginCount(name string) (counting, error) {
	shared, err := shareWords(d.store.t[bpfMapRoomsV1])
	if err != nil {
		return counting{}, mapError(bpfMapRoomsV1, err)
	}
	room := shared.words[roomWords*int(rooms[name]):]
	atomic.StoreUint64(&room[1], evictsFrom(d.store.t[name].MaxEntries(), uint32(ebpf.MustPossibleCPU())))
	return counting{shared, &room[0], atomic.LoadUint64(&room[0])}, nil
}

// end has the programs go on from so many rows. What they have written meanwhile counts, whether
// it was seen or not.
func (c counting) end(rows int) {
	atomic.AddUint64(c.rows, uint64(rows)-c.before)
	runtime.KeepAlive(c.shared)
}

// Evictions tells of flows whose rows were evicted, since a map of flows was full.
type Evictions struct {
	// Near: a map of flows is nearly full, or was within two minutes. Evicting: it was full within
	// that time, and rows of flows that go on may have been evicted.
	Near, Evicting bool
	// Held: there may be flows whose row was evicted. It is so for two hours after the last eviction.
	Held bool
	// Translated are packets of backends of such flows of which the tables told the VIP.
	Translated uint64
}

// Evictions reads what the programs say of evictions.
func (r *Reader) Evictions() (Evictions, error) {
	now, err := monotonic()
	if err != nil {
		return Evictions{}, err
	}
	var row bpfEvictions
	if err := r.t[bpfMapEvictionsV1].Lookup(uint32(0), &row); err != nil {
		return Evictions{}, mapError(bpfMapEvictionsV1, err)
	}
	return Evictions{
		Near: row.Near > now, Evicting: row.Until > now+flowIdle-nearIdle, Held: row.Until > now, Translated: row.Translated,
	}, nil
}

// nearIdle is NEAR_IDLE of bpf/lib/room.h.
const nearIdle = 120
