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
