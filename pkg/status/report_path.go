package status

import (
	"net/netip"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// DropCount is the number of packets dropped for a reason.
type DropCount struct {
	// Reason is a word of the one list of drop reasons.
	Reason string `json:"reason"`
	// Description is the reason's sentence in the documentation.
	Description string `json:"description,omitempty"`
	Packets     uint64 `json:"packets"`
	// Program is the metadata program that dropped the packets; empty: another program.
	Program string `json:"program,omitempty"`
}

// Drops is the answer to "sluicectl drops".
type Drops struct {
	Counts []DropCount `json:"counts"`
	// Unreadable is for metrics alone: sampled drops that could not be read.
	Unreadable uint64 `json:"-"`
}

// Drop is one sampled drop: a line of "sluicectl drops --follow".
type Drop struct {
	Time    time.Time `json:"time"`
	Reason  string    `json:"reason"`
	Program string    `json:"program"`
	// Interface is the device by which the packet entered.
	Interface string     `json:"interface,omitempty"`
	VNI       intent.VNI `json:"vni,omitempty"`
	// Src, Dst, Protocol and the ports are read from the inner packet, if it is
	// long enough.
	Src      netip.Addr `json:"src,omitzero"`
	Dst      netip.Addr `json:"dst,omitzero"`
	Protocol uint8      `json:"protocol,omitempty"`
	SrcPort  uint16     `json:"srcPort,omitempty"`
	DstPort  uint16     `json:"dstPort,omitempty"`
	// Length is the packet's length, Packet its first bytes.
	Length uint32 `json:"length"`
	Packet []byte `json:"packet,omitempty"`
}

// Change is one row of "sluicectl diff": an operation that the reconciler would execute now.
type Change struct {
	Table string `json:"table"`
	Key   string `json:"key"`
	// Action is add, change or delete.
	Action string `json:"action"`
	Wanted string `json:"wanted,omitempty"`
	Actual string `json:"actual,omitempty"`
	// Held tells why a deletion waits; Error why the last attempt failed.
	Held  string `json:"held,omitempty"`
	Error string `json:"error,omitempty"`
}

// Diff is the answer to "sluicectl diff". No change: both planes agree.
type Diff struct {
	Changes []Change `json:"changes"`
}

// Explanation is the answer to "sluicectl explain".
type Explanation struct {
	VRF intent.VNI `json:"vrf"`
	Src netip.Addr `json:"src"`
	Dst netip.Addr `json:"dst"`
	// Works tells that every step was found or is stale.
	Works bool `json:"works"`
	// InsideOVN tells that both ends are behind one router here: OVN forwards between them, and
	// Sluice never sees the packets.
	InsideOVN bool   `json:"insideOVN,omitempty"`
	Steps     []Step `json:"steps"`
	// Notes are facts beside the steps.
	Notes []string `json:"notes,omitempty"`
}

// NewExplanation judges the steps.
func NewExplanation(q Query, steps []Step) Explanation {
	e := Explanation{VRF: q.VRF, Src: q.Src, Dst: q.Dst, Works: len(steps) > 0, Steps: steps}
	if steps == nil {
		e.Steps = []Step{}
	}
	for _, s := range steps {
		e.Works = e.Works && (s.Found || s.Stale)
	}
	return e
}

// Missing is the first step that cuts the path.
func (e Explanation) Missing() (Step, bool) {
	for _, s := range e.Steps {
		if !s.Found && !s.Stale {
			return s, true
		}
	}
	return Step{}, false
}

// TraceRequest asks to run the live programs on a synthetic packet.
type TraceRequest struct {
	VRF      intent.VNI `json:"vrf"`
	Src      netip.Addr `json:"src"`
	Dst      netip.Addr `json:"dst"`
	Protocol uint8      `json:"protocol"`
	SrcPort  uint16     `json:"srcPort,omitempty"`
	DstPort  uint16     `json:"dstPort,omitempty"`
	// Length is the IP packet's length in bytes. 0: the shortest possible.
	Length uint16 `json:"length,omitempty"`
	// FromFabric is the VTEP that sends the packet. Absent: OVN sends it.
	FromFabric netip.Addr `json:"fromFabric,omitzero"`
	// Port is the logical port of a VM on this node: the packet is on its tap, from the VM, or
	// with ToVM to the VM. VRF is ignored.
	Port string `json:"port,omitempty"`
	ToVM bool   `json:"toVM,omitempty"`
}

// Decision is one step of a program in trace mode.
type Decision struct {
	Program string `json:"program"`
	// Step is the subject of the decision: vrf, source, destination, mtu ….
	Step   string `json:"step"`
	Result string `json:"result"`
	// Why is the row behind the decision, or the missing row.
	Why string `json:"why,omitempty"`
}

// InsideOVN is the verdict of a packet that OVN forwards itself.
const InsideOVN = "inside-ovn"

// OnKernelPath is the verdict of a packet from OVN that the kernel's routes carry,
// and no program of Sluice's.
const OnKernelPath = "kernel"

// OnToHost is the verdict of a packet from the underlay that is for no exposed address.
const OnToHost = "host"

// OnTap is the verdict of a packet on a VM's tap that passes: to Open vSwitch, or to the VM.
const OnTap = "tap"

// Trace is the answer to "sluicectl trace".
type Trace struct {
	Request   TraceRequest `json:"request"`
	Decisions []Decision   `json:"decisions"`
	// Verdict is redirect, drop or reply; Drop the reason of a drop. inside-ovn: OVN forwards
	// between the ends, and no program ran. kernel: the VRF is on the kernel path, and the packet is
	// from OVN. host: the packet is from the underlay and for the node itself. tap: the packet is on
	// a VM's tap and passes, as Becomes if a session translates it.
	Verdict string `json:"verdict"`
	Drop    string `json:"drop,omitempty"`
	// Interface is where a redirected packet would leave.
	Interface string `json:"interface,omitempty"`
	// VTEP and VNI are the tunnel key with which the packet would leave.
	VTEP netip.Addr `json:"vtep,omitzero"`
	VNI  intent.VNI `json:"vni,omitempty"`
	// Becomes is the backend to which a VM's packet is translated, or the VIP from which a packet
	// to a VM is translated.
	Becomes string `json:"becomes,omitempty"`
	// Packet is the packet as it would leave.
	Packet []byte `json:"packet,omitempty"`
}
