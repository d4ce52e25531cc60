package ebpf

import (
	"time"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// vrfFront writes the array before the map of VRFs, through shared memory. A row
// also tells which prefix lengths the routes of the VRF have.
type vrfFront struct {
	rows sharedRows[bpfVrfFront]
	size uint32
	// vrfs are the rows of the map.
	vrfs map[intent.VNI]bpfVrf
	// routes counts the routes of each length, vips the VIPs of all VRFs of a row.
	routes map[lengthKey]int
	vips   map[uint32]int
	// unknown is until when a VRF of a row may have flows that this node does not know.
	unknown map[uint32]uint32
	// born is when a VRF came, if that was in this process.
	born map[intent.VNI]time.Time
}

type lengthKey struct {
	vni    intent.VNI
	six    bool
	length uint8
}

func lengthOf(k intent.RouteKey) lengthKey {
	return lengthKey{k.VNI, k.Prefix.Addr().Is6(), mappedBits(k)}
}

func openVRFFront(m *ebpf.Map) (*vrfFront, error) {
	rows, err := shareRows[bpfVrfFront](m)
	if err != nil {
		return nil, err
	}
	return &vrfFront{rows: rows, size: m.MaxEntries(), vrfs: map[intent.VNI]bpfVrf{}, routes: map[lengthKey]int{}, vips: map[uint32]int{}, unknown: map[uint32]uint32{}, born: map[intent.VNI]time.Time{}}, nil
}

func (f *vrfFront) slot(vni intent.VNI) uint32 { return uint32(vni) % f.size }

func (f *vrfFront) read(slot uint32) bpfVrfFront { return f.rows.read(slot) }

// write leaves a row alone that is right. One that changes its VRF says nothing
// meanwhile; for the same VRF each word is written at once.
func (f *vrfFront) write(slot uint32, r bpfVrfFront) {
	if old := f.read(slot); old != r {
		f.rows.write(slot, r, old.Vni != r.Vni)
	}
}

// lengths are those of one family: all of them, or the longest and that there
// are more.
func (f *vrfFront) lengths(vni intent.VNI, six bool) (out [len(bpfVrfFront{}.Four)]uint8) {
	n := 0
	for length := 128; length >= 0; length-- {
		if f.routes[lengthKey{vni, six, uint8(length)}] == 0 {
			continue
		}
		if n == len(out) {
			out[n-1] = uint8(bpfLengthEndLENGTH_ASK)
			return out
		}
		out[n] = uint8(length)
		n++
	}
	for ; n < len(out); n++ {
		out[n] = uint8(bpfLengthEndLENGTH_NONE)
	}
	return out
}

func (f *vrfFront) row(vni intent.VNI) bpfVrfFront {
	v := f.vrfs[vni]
	row := bpfVrfFront{Vni: uint32(vni), Index: v.Index, Four: f.lengths(vni, false), Six: f.lengths(vni, true), Device: v.Device}
	if slot := f.slot(vni); f.vips[slot] > 0 {
		row.Unknown = max(f.unknown[slot], 1)
	}
	return row
}

// flowIdle is for how long there may be flows that another node knows, or OVN, in s: TCP_IDLE
// of bpf/lib/flow.h.
const flowIdle = uint32(intent.FlowIdle / time.Second)

// claim tells that flows to VIPs of the VRF may have begun on another node.
func (f *vrfFront) claim(vni intent.VNI) {
	now, err := monotonic()
	if err != nil {
		return // no kernel says so
	}
	f.unknown[f.slot(vni)] = now + flowIdle
	f.rewrite(f.slot(vni))
}

// moved is claim where there are VIPs: else no flow begins.
func (f *vrfFront) moved(vni intent.VNI) {
	if f.vips[f.slot(vni)] > 0 {
		f.claim(vni)
	}
}

// rewrite brings a row up to date for the VRF that it is of.
func (f *vrfFront) rewrite(slot uint32) {
	vni := intent.VNI(f.read(slot).Vni)
	if _, there := f.vrfs[vni]; there {
		f.write(slot, f.row(vni))
	}
}

// adoptVIP takes a VIP into account that was found in its map. Of VMs no VRF is told.
func (f *vrfFront) adoptVIP(vni intent.VNI) {
	if f != nil {
		f.vips[f.slot(vni)]++
	}
}

// since is when a VRF came, if that was in this process.
func (f *vrfFront) since(vni intent.VNI) time.Time {
	if f == nil {
		return time.Time{}
	}
	return f.born[vni]
}

// countVIP follows a VIP that comes into its map (+1) or has left it (-1).
func (f *vrfFront) countVIP(vni intent.VNI, n int) {
	if f == nil {
		return
	}
	slot := f.slot(vni)
	if f.vips[slot] += n; f.vips[slot] == 0 {
		delete(f.vips, slot)
		delete(f.unknown, slot)
	}
	f.rewrite(slot)
}

// holder tells whether the row of a VRF is its own.
func (f *vrfFront) holder(vni intent.VNI) bool { return f.read(f.slot(vni)).Vni == uint32(vni) }

// add follows a route that is new in its map.
func (f *vrfFront) add(k lengthKey) {
	if f.routes[k]++; f.routes[k] == 1 && f.holder(k.vni) {
		f.write(f.slot(k.vni), f.row(k.vni))
	}
}

// remove follows a route that was deleted from its map.
func (f *vrfFront) remove(k lengthKey) {
	if f.routes[k]--; f.routes[k] > 0 {
		return
	}
	delete(f.routes, k)
	if f.holder(k.vni) {
		f.write(f.slot(k.vni), f.row(k.vni))
	}
}

// put follows a VRF that was written to the map. The default VRF keeps its row:
// underlay_in asks for it with each packet of the host.
func (f *vrfFront) put(vni intent.VNI, v bpfVrf) {
	if _, had := f.vrfs[vni]; !had {
		f.born[vni] = time.Now()
	}
	f.vrfs[vni] = v
	if vni != intent.DefaultVRF && f.slot(vni) == f.slot(intent.DefaultVRF) && f.holder(intent.DefaultVRF) {
		return
	}
	f.write(f.slot(vni), f.row(vni))
}

// drop goes before a VRF that is deleted from the map. Its row becomes that of another VRF.
func (f *vrfFront) drop(vni intent.VNI) {
	delete(f.vrfs, vni)
	delete(f.born, vni)
	if !f.holder(vni) {
		return
	}
	slot, row := f.slot(vni), bpfVrfFront{}
	for other := range f.vrfs {
		if f.slot(other) == slot {
			row = f.row(other)
		}
	}
	f.write(slot, row)
}

// settle ends adoption: the front becomes what the maps say. Rows that are right
// are not touched.
func (f *vrfFront) settle() {
	want := map[uint32]bpfVrfFront{}
	for slot := range f.vips {
		f.unknown[slot] = f.read(slot).Unknown
	}
	for vni := range f.vrfs {
		row, taken := want[f.slot(vni)]
		if !taken || vni == intent.DefaultVRF || f.holder(vni) && row.Vni != uint32(intent.DefaultVRF) {
			want[f.slot(vni)] = f.row(vni)
		}
	}
	for slot := range f.size {
		f.write(slot, want[slot])
	}
}
