package ebpf

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Reader reads the pinned maps. The daemon need not run.
type Reader struct{ t tables }

// OpenReader opens the maps of a plane's directory for reading.
func OpenReader(dir string, plane Plane) (*Reader, error) {
	specs, err := plane.mapSpecs(DefaultLimits())
	if err != nil {
		return nil, err
	}
	return openReader(dir, slices.Collect(maps.Keys(specs)))
}

// openReader opens some maps of a directory.
func openReader(dir string, names []string) (*Reader, error) {
	r := &Reader{tables{}}
	for _, name := range names {
		m, err := ebpf.LoadPinnedMap(pinOf(dir, name), nil)
		if err != nil {
			r.Close()
			if errors.Is(err, fs.ErrNotExist) {
				err = ErrNotLoaded
			}
			return nil, fmt.Errorf("map %s in %s: %w", name, dir, err)
		}
		r.t[name] = m
	}
	return r, nil
}

// Reader reads the maps of a loaded data plane. Do not close it.
func (d *Dataplane) Reader() *Reader { return &Reader{d.tables} }

// Close lets go of the maps.
func (r *Reader) Close() error {
	r.t.close()
	return nil
}

// Counter is the traffic of one VRF in one direction since the VRF was added.
type Counter struct {
	Packets, Bytes uint64 // forwarded; bytes from the IP header on
	Drops          uint64
	Answers        uint64 // ARP, ND and ICMP errors that were sent
}

// VRFCounters is the traffic of one VRF. VNI 0 is what belongs to no VRF.
type VRFCounters struct {
	VNI intent.VNI
	// Path is the VRF's. On the kernel path what goes to the fabric is not counted.
	Path                 intent.Path
	FromFabric, ToFabric Counter
}

// Counters reads the counters of all VRFs, ordered by VNI.
func (r *Reader) Counters() ([]VRFCounters, error) {
	indices, paths := map[intent.VNI]uint32{0: 0}, map[intent.VNI]intent.Path{}
	if _, err := pinned.Walk(r.t[bpfMapVrfsV2], func(vni uint32, v bpfVrf) {
		indices[intent.VNI(vni)] = v.Index
		if v.Device != 0 {
			paths[intent.VNI(vni)] = intent.PathKernel
		}
	}); err != nil {
		return nil, mapError(bpfMapVrfsV2, err)
	}
	out := make([]VRFCounters, 0, len(indices))
	for _, vni := range slices.Sorted(maps.Keys(indices)) {
		c := VRFCounters{VNI: vni, Path: paths[vni]}
		for _, d := range []struct {
			direction bpfDirection
			to        *Counter
		}{{bpfDirectionFROM_FABRIC, &c.FromFabric}, {bpfDirectionTO_FABRIC, &c.ToFabric}} {
			var cpus []bpfCounter
			if err := r.t[bpfMapCountersV1].Lookup(indices[vni]*2+uint32(d.direction), &cpus); err != nil {
				return nil, mapError(bpfMapCountersV1, err)
			}
			for _, v := range cpus {
				d.to.Packets += v.Packets
				d.to.Bytes += v.Bytes
				d.to.Drops += v.Drops
				d.to.Answers += v.Answers
			}
		}
		out = append(out, c)
	}
	return out, nil
}

// Drops reads how many packets were dropped for each reason.
func (r *Reader) Drops() (map[drop.Reason]uint64, error) {
	out := map[drop.Reason]uint64{}
	for _, reason := range drop.All() {
		var cpus []uint64
		if err := r.t[bpfMapDropsV1].Lookup(uint32(reason), &cpus); err != nil {
			return nil, mapError(bpfMapDropsV1, err)
		}
		for _, n := range cpus {
			out[reason] += n
		}
	}
	return out, nil
}

// Sample is a dropped packet.
type Sample struct {
	// Uptime is when it was dropped, on the monotonic clock.
	Uptime  time.Duration
	Reason  drop.Reason
	VNI     intent.VNI // 0: no VRF known yet
	Program Program
	IfIndex uint32
	Len     int    // of the whole frame
	Frame   []byte // its first bytes, at most 128
}

// Samples calls each for every sampled drop until ctx ends, and unreadable for one
// that it cannot read and passes over. There is one buffer: of two readers each
// gets a part.
func (r *Reader) Samples(ctx context.Context, each func(Sample), unreadable func(error)) error {
	rd, err := ringbuf.NewReader(r.t[bpfMapSamplesV1])
	if err != nil {
		return fmt.Errorf("map %s: %w", bpfMapSamplesV1, err)
	}
	defer rd.Close()
	stop := context.AfterFunc(ctx, func() { rd.Close() })
	defer stop()
	for {
		record, err := rd.Read()
		if errors.Is(err, ringbuf.ErrClosed) {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("map %s: %w", bpfMapSamplesV1, err)
		}
		s, err := parseSample(record.RawSample)
		if err != nil {
			unreadable(fmt.Errorf("map %s: %w", bpfMapSamplesV1, err))
			continue
		}
		each(s)
	}
}
