package status

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// VIP is one row of "sluicectl lb list".
type VIP struct {
	VNI     intent.VNI `json:"vni"`
	Address netip.Addr `json:"address"`
	// Port is 0 for all ports that have no VIP of their own.
	Port     uint16          `json:"port"`
	Protocol intent.Protocol `json:"protocol"`
	// LoadBalancer is the name of the row of NB Load_Balancer, or its _uuid.
	LoadBalancer string `json:"loadBalancer"`
	// Path is what serves it: ebpf or ovn. Reason is a word of reasons.md.
	Path         string `json:"path"`
	Reason       string `json:"reason"`
	ReasonDetail string `json:"reasonDetail,omitempty"`
	// Standby: the gateway port of the VIP is on another node, and may come.
	Standby bool `json:"standby,omitempty"`
	// State is whether it is in place, for path ebpf.
	State State  `json:"state"`
	Error string `json:"error,omitempty"`
	// Slots is the size of its Maglev table.
	Slots    uint32           `json:"slots"`
	Backends []intent.Backend `json:"backends"`
}

// VIPQuery asks which backend a flow gets.
type VIPQuery struct {
	VNI      intent.VNI      `json:"vni"`
	Protocol intent.Protocol `json:"protocol"`
	Client   netip.AddrPort  `json:"client"`
	VIP      netip.AddrPort  `json:"vip"`
}

// VIPExplanation is which backend a flow gets, and why.
type VIPExplanation struct {
	Query VIPQuery `json:"query"`
	// VIP is the one that takes the flow.
	VIP VIP `json:"vip"`
	// Known is where this node sends the flow's packets since it knows it; nil: it does not.
	Known *netip.AddrPort `json:"known,omitempty"`
	// Slot and Backend are where a flow goes that a node does not know: the same on all
	// nodes. Backend is nil if no backend gets new flows.
	Slot    uint32          `json:"slot"`
	Backend *intent.Backend `json:"backend,omitempty"`
}

// Flow is a row of "sluicectl lb flows".
type Flow struct {
	VNI      intent.VNI      `json:"vni"`
	Protocol intent.Protocol `json:"protocol"`
	Client   netip.AddrPort  `json:"client"`
	VIP      netip.AddrPort  `json:"vip"`
	Backend  netip.AddrPort  `json:"backend"`
	// State is opening, open or ending.
	State string `json:"state"`
	// Idle is for how many seconds the client has sent nothing.
	Idle uint32 `json:"idle"`
}
