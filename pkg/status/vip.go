package status

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// VIP is one row of "sluicectl lb list".
type VIP struct {
	// VNI is the VRF's VNI, or the number of the switch.
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
	// Path is what balances the VIP: ebpf or ovn. Reason is a word of reasons.md.
	Path         string `json:"path"`
	Reason       string `json:"reason"`
	ReasonDetail string `json:"reasonDetail,omitempty"`
	// Standby: the gateway port of the VIP is on another node, and may fail over to this one.
	Standby bool `json:"standby,omitempty"`
	// State is whether the VIP's rows are programmed, for path ebpf.
	State State  `json:"state"`
	Error string `json:"error,omitempty"`
	// Slots is the size of the VIP's Maglev table.
	Slots uint32 `json:"slots"`
	// Affinity is how many seconds a client keeps its backend; 0: no affinity.
	Affinity uint16 `json:"affinity,omitempty"`
	// Flush: sessions of a removed backend end.
	Flush bool `json:"flush,omitempty"`
	// TableHash is 16 hexadecimal digits, equal on two nodes exactly if their Maglev tables are
	// equal. In "lb show" and "lb backends", as are Slots and Sessions of Backends.
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

// VIPTraffic is the traffic since a VIP or a backend was added.
type VIPTraffic struct {
	ToBackends PacketCount `json:"toBackends"`
	ToClients  PacketCount `json:"toClients"`
	// Sessions is the number of new sessions that got an entry.
	Sessions uint64 `json:"sessions"`
	// Unrecorded is the packets of sessions above loadBalancing.newSessionRate; 0 for backends.
	Unrecorded uint64 `json:"unrecorded"`
	// Drops is the packets that were dropped without a backend; 0 for backends.
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
	// Port is 0 if the VIP has none: the packet's port counts.
	Port uint16 `json:"port"`
	// Weight is the backend's share of new sessions, 0 to 256.
	Weight uint16 `json:"weight"`
	// State: up gets new sessions; down was probed, and is not alive; draining has weight 0.
	State BackendState `json:"state"`
	// Slots is the backend's slots in the Maglev table, Sessions the number of its sessions on this node.
	Slots    uint32 `json:"slots,omitempty"`
	Sessions uint32 `json:"sessions,omitempty"`
	// Traffic is the backend's traffic from all VIPs of the VRF, as VIP.Traffic.
	Traffic *VIPTraffic `json:"traffic,omitempty"`
}

// BackendState tells whether a backend gets new sessions.
type BackendState string

// The states of backends.
const (
	BackendUp       BackendState = "up"       // gets new sessions
	BackendDown     BackendState = "down"     // probed, and not alive
	BackendDraining BackendState = "draining" // its weight is 0
)

// VIPQuery asks which backend a client's connection gets.
type VIPQuery struct {
	// Switch is the name of the VMs' switch; empty: VNI is a VRF's.
	Switch   string          `json:"switch,omitempty"`
	VNI      intent.VNI      `json:"vni"`
	Protocol intent.Protocol `json:"protocol"`
	Client   netip.AddrPort  `json:"client"`
	VIP      netip.AddrPort  `json:"vip"`
}

// VIPExplanation is the backend of a client's connection, and why.
type VIPExplanation struct {
	Query VIPQuery `json:"query"`
	// VIP is the VIP of the connection.
	VIP VIP `json:"vip"`
	// Session is the backend of the connection's session on this node; absent: there is no session.
	Session *netip.AddrPort `json:"session,omitempty"`
	// LeftToOVN is why this node leaves the connection to OVN, which may choose another backend,
	// although eBPF balances the VIP; empty: eBPF balances it.
	LeftToOVN string `json:"leftToOVN,omitempty"`
	// Affinity is the client's backend by session affinity on this node, if that backend gets new
	// sessions; absent: none.
	Affinity *netip.AddrPort `json:"affinity,omitempty"`
	// Slot and Backend are the choice of a node without a session: the same on all nodes.
	// Backend is absent if no backend gets new sessions.
	Slot    uint32          `json:"slot"`
	Backend *intent.Backend `json:"backend,omitempty"`
}

// Sessions is the answer to "sluicectl lb sessions".
type Sessions struct {
	Sessions []Session `json:"sessions"`
	// Total is the number of all sessions; at most 10000 are listed.
	Total int `json:"total"`
}

// Session is a row of "sluicectl lb sessions".
type Session struct {
	VNI intent.VNI `json:"vni"`
	// Switch is the VIP's switch.
	Switch   string          `json:"switch,omitempty"`
	Protocol intent.Protocol `json:"protocol"`
	Client   netip.AddrPort  `json:"client"`
	VIP      netip.AddrPort  `json:"vip"`
	Backend  netip.AddrPort  `json:"backend"`
	// State is opening, open or ending.
	State string `json:"state"`
	// Idle is the seconds since the client's last packet.
	Idle uint32 `json:"idle"`
}

// Scope is where the VIP is one.
func (s Session) Scope() string { return scope(s.VNI, s.Switch) }
