package status

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// VIP is one row of "sluicectl lb list".
type VIP struct {
	// VNI is that of the VRF, or the number of the switch.
	VNI intent.VNI `json:"vni"`
	// Switch is the name of the switch whose VMs the VIP is for; empty: it is for
	// packets from the fabric.
	Switch  string     `json:"switch,omitempty"`
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
	// Standby: the gateway port of the VIP is on another node, and may fail over to this one.
	Standby bool `json:"standby,omitempty"`
	// State is whether it is in place, for path ebpf.
	State State  `json:"state"`
	Error string `json:"error,omitempty"`
	// Slots is the size of its Maglev table.
	Slots uint32 `json:"slots"`
	// Affinity is for how many seconds a client stays with its backend; 0: not at all.
	Affinity uint16 `json:"affinity,omitempty"`
	// Flush: the flows of a removed backend end.
	Flush bool `json:"flush,omitempty"`
	// TableHash is equal on two nodes exactly if their Maglev tables are equal, 16
	// hexadecimal digits. In "lb show" and "lb backends", as are Slots and Flows of Backends.
	TableHash string       `json:"tableHash,omitempty"`
	Backends  []VIPBackend `json:"backends"`
	// Traffic is in "lb show" and "lb backends", of VIPs that eBPF serves.
	Traffic *VIPTraffic `json:"traffic,omitempty"`
}

// Scope is where it is a VIP: the VRF's VNI, or the switch by its name.
func (v VIP) Scope() string { return scope(v.VNI, v.Switch) }

// Where is Scope in words.
func (v VIP) Where() string {
	if v.Switch != "" {
		return v.Scope()
	}
	return "VRF " + v.Scope()
}

func scope(vni intent.VNI, on string) string {
	if on != "" {
		return "switch " + on
	}
	return vni.String()
}

// VIPTraffic is what was balanced since a VIP or a backend was added.
type VIPTraffic struct {
	ToBackends PacketCount `json:"toBackends"`
	ToClients  PacketCount `json:"toClients"`
	// Flows is how many began, and were recorded.
	Flows uint64 `json:"flows"`
	// Unrecorded is the packets of flows above loadBalancing.newFlowRate; 0 for backends.
	Unrecorded uint64 `json:"unrecorded"`
	// Drops is the packets that had no backend; 0 for backends.
	Drops uint64 `json:"drops"`
}

// PacketCount is IP packets and their bytes, from the header on.
type PacketCount struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
}

// VIPBackend is a backend of a VIP.
type VIPBackend struct {
	Addr netip.Addr `json:"address"`
	// Port is 0 where the VIP has none: that of the packet.
	Port uint16 `json:"port"`
	// Weight is the share of new flows that the load balancer gives it, 0 to 256.
	Weight uint16       `json:"weight"`
	State  BackendState `json:"state"`
	// Slots is how many slots of the Maglev table lead to it, Flows how many sessions of this node do.
	Slots uint32 `json:"slots,omitempty"`
	Flows uint32 `json:"flows,omitempty"`
	// Traffic is that of all VIPs of the VRF which share the backend, as VIP.Traffic.
	Traffic *VIPTraffic `json:"traffic,omitempty"`
}

// BackendState tells whether a backend gets new flows.
type BackendState string

// The states of backends.
const (
	BackendUp       BackendState = "up"       // it does
	BackendDown     BackendState = "down"     // it was probed, and is not alive
	BackendDraining BackendState = "draining" // its weight is 0
)

// VIPQuery asks which backend a flow gets.
type VIPQuery struct {
	// Switch is the name of the switch of the asking VMs, else VNI is that of a VRF.
	Switch   string          `json:"switch,omitempty"`
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
	// Session is the backend of the flow's session on this node; nil: there is no session.
	Session *netip.AddrPort `json:"session,omitempty"`
	// LeftToOVN is why this node leaves the flow to OVN, which may choose another backend, though
	// the VIP is eBPF's; empty: it does not.
	LeftToOVN string `json:"leftToOVN,omitempty"`
	// Affinity is the backend that this node gives the client by session affinity, if that backend
	// gets new flows; nil: none.
	Affinity *netip.AddrPort `json:"affinity,omitempty"`
	// Slot and Backend are what a node without a session chooses: the same on all
	// nodes. Backend is nil if no backend gets new flows.
	Slot    uint32          `json:"slot"`
	Backend *intent.Backend `json:"backend,omitempty"`
}

// Flows is the answer to "sluicectl lb flows".
type Flows struct {
	Flows []Flow `json:"flows"`
	// Total is how many there are; at most 10000 are listed.
	Total int `json:"total"`
}

// Flow is a row of "sluicectl lb flows".
type Flow struct {
	VNI intent.VNI `json:"vni"`
	// Switch is that of the VIP.
	Switch   string          `json:"switch,omitempty"`
	Protocol intent.Protocol `json:"protocol"`
	Client   netip.AddrPort  `json:"client"`
	VIP      netip.AddrPort  `json:"vip"`
	Backend  netip.AddrPort  `json:"backend"`
	// State is opening, open or ending.
	State string `json:"state"`
	// Idle is for how many seconds the client has sent nothing.
	Idle uint32 `json:"idle"`
}

// Scope is where the VIP is one.
func (f Flow) Scope() string { return scope(f.VNI, f.Switch) }
