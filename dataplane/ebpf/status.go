package ebpf

import (
	"cmp"
	"net"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/packet"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// Status is the counter as it is reported.
func (c Counter) Status() status.Traffic {
	return status.Traffic{Packets: c.Packets, Bytes: c.Bytes}
}

// DropStatus is every reason with its packets, the most frequent first.
func (r *Reader) DropStatus() (status.Drops, error) {
	packets, err := r.Drops()
	return DropStatus(packets), err
}

// DropStatus describes counts of dropped packets, the most first.
func DropStatus(packets map[drop.Reason]uint64) status.Drops {
	out := status.Drops{Counts: []status.DropCount{}}
	for _, reason := range drop.All() {
		out.Counts = append(out.Counts, status.DropCount{Reason: reason.String(), Description: reason.Explain(), Packets: packets[reason]})
	}
	slices.SortStableFunc(out.Counts, func(a, b status.DropCount) int { return cmp.Compare(b.Packets, a.Packets) })
	return out
}

// Status is the sample as it is reported, with the name that its device has now.
func (s Sample) Status() status.Drop {
	f := packet.Parse(s.Frame)
	d := status.Drop{Time: wallClock(s.Uptime), Reason: s.Reason.String(), Program: s.Program.String(), VNI: s.VNI, Src: f.Src, Dst: f.Dst,
		Protocol: f.Protocol, SrcPort: f.SrcPort, DstPort: f.DstPort, Length: uint32(s.Len), Packet: s.Frame}
	if l, err := net.InterfaceByIndex(int(s.IfIndex)); err == nil {
		d.Interface = l.Name
	}
	return d
}

// wallClock turns a time of CLOCK_MONOTONIC into one that people read.
func wallClock(monotonic time.Duration) time.Time {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
		return time.Now()
	}
	return time.Now().Add(monotonic - time.Duration(now.Nano()))
}
