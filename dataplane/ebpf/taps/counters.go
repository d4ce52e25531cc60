package taps

import (
	"fmt"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/status"
)

// Outcome is one thing that may become of a packet that is a matter of metadata.
type Outcome struct {
	// Name is that of the field of the map, and of the metric's label.
	Name string
	// Help says in a sentence which packets are counted.
	Help string
	of   func(*bpfSteered) uint64
}

var outcomes = []Outcome{
	{"steered4", "IPv4 requests to the proxy.", func(c *bpfSteered) uint64 { return c.Steered4 }},
	{"steered6", "IPv6 requests to the proxy.", func(c *bpfSteered) uint64 { return c.Steered6 }},
	{"answered_arp", "Answered ARP requests for 169.254.169.254.", func(c *bpfSteered) uint64 { return c.AnsweredArp }},
	{"answered_nd", "Answered neighbour solicitations for fe80::a9fe:a9fe.", func(c *bpfSteered) uint64 { return c.AnsweredNd }},
	{"passed_stale", "Requests left to Open vSwitch, because the proxy gave no sign of life.", func(c *bpfSteered) uint64 { return c.PassedStale }},
	{"passed_unknown_source", "Requests left to Open vSwitch, because their source may not ask.", func(c *bpfSteered) uint64 { return c.PassedUnknownSource }},
	{"passed_extension", "IPv6 packets to the metadata address left to Open vSwitch, because they have extension headers.", func(c *bpfSteered) uint64 { return c.PassedExtension }},
	{"dropped_fragment", "Dropped fragments of requests.", func(c *bpfSteered) uint64 { return c.DroppedFragment }},
	{"replied4", "IPv4 packets from the proxy to a VM.", func(c *bpfSteered) uint64 { return c.Replied4 }},
	{"replied6", "IPv6 packets from the proxy to a VM.", func(c *bpfSteered) uint64 { return c.Replied6 }},
	{"dropped_reset", "Dropped resets, which would have told a VM that no proxy listens; the VM tries again.", func(c *bpfSteered) uint64 { return c.DroppedReset }},
	{"dropped_number", "Dropped packets of the proxy for a VM that is gone.", func(c *bpfSteered) uint64 { return c.DroppedNumber }},
	{"dropped_reply", "Dropped packets out of the proxy's namespace that are no replies.", func(c *bpfSteered) uint64 { return c.DroppedReply }},
	{"dropped_edit", "Dropped packets that the kernel refused to change.", func(c *bpfSteered) uint64 { return c.DroppedEdit }},
}

// droppedBy are the programs of the outcomes that are drops.
var droppedBy = map[string]string{
	"dropped_fragment": "tap_in", "dropped_edit": "tap_in, proxy_in",
	"dropped_reset": "proxy_in", "dropped_number": "proxy_in", "dropped_reply": "proxy_in",
}

// Outcomes lists what Counters counts.
func Outcomes() []Outcome { return outcomes }

// Counters are the packets since the maps were made, by the names of outcomes.
func (r *Reader) Counters() (map[string]uint64, error) {
	out := map[string]uint64{}
	m := r.maps[bpfMapSteeredV1]
	if m == nil {
		return out, nil
	}
	var cpus []bpfSteered
	if err := m.Lookup(uint32(0), &cpus); err != nil {
		return nil, fmt.Errorf("map %s: %w", bpfMapSteeredV1, err)
	}
	for _, o := range outcomes {
		for i := range cpus {
			out[o.Name] += o.of(&cpus[i])
		}
	}
	return out, nil
}

// DropStatus is the dropped packets, as they are reported; nothing where nothing counts
// them.
func (r *Reader) DropStatus() ([]status.DropCount, error) {
	counts, err := r.Counters()
	if err != nil || len(counts) == 0 {
		return nil, err
	}
	var out []status.DropCount
	for _, o := range outcomes {
		if strings.HasPrefix(o.Name, "dropped_") {
			out = append(out, status.DropCount{Reason: o.Name, Description: o.Help, Program: droppedBy[o.Name], Packets: counts[o.Name]})
		}
	}
	return out, nil
}
