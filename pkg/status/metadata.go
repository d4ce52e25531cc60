package status

import "github.com/ovn-sluice/sluice/pkg/intent"

// Metadata is the answer to "sluicectl metadata ports".
type Metadata struct {
	// Used tells whether metadata is served at all; Note says why not.
	Used bool   `json:"used"`
	Note string `json:"note,omitempty"`
	// Proxy says what is wrong with the proxy: its last heartbeat is older than
	// metadata.staleAfter, or there was none. Requests are left to OVN meanwhile.
	Proxy string         `json:"proxy,omitempty"`
	Ports []MetadataPort `json:"ports"`
}

// MetadataPort is a machine's port that is bound to this node.
type MetadataPort struct {
	// Port is Port_Binding.logical_port.
	Port     string `json:"port"`
	Network  string `json:"network,omitempty"`
	Instance string `json:"instance,omitempty"`
	Project  string `json:"project,omitempty"`
	// Served is how its requests get to the proxy.
	Served MetadataForm `json:"served"`
	// Reason and Detail say why not from its tap.
	Reason string `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Device is the tap, or the device in the network's namespace, and VLAN the tag of a
	// trunk's subport.
	Device string          `json:"device,omitempty"`
	VLAN   uint16          `json:"vlan,omitempty"`
	Guests intent.GuestSet `json:"guests"`
	// Programmed: all of it is in place. Error is why it is not.
	Programmed bool   `json:"programmed"`
	Error      string `json:"error,omitempty"`
}

// MetadataForm is how requests of a port get to the proxy.
type MetadataForm string

// The forms.
const (
	// FromTap: eBPF steers them from the machine's tap.
	FromTap MetadataForm = "tap"
	// FromNamespace: OVN delivers them to the namespace of the network's metadata port.
	FromNamespace MetadataForm = "namespace"
	// LeftToOVN: Sluice has nothing to do with them.
	LeftToOVN MetadataForm = "ovn"
)

// MetadataQuery asks why a port's requests are answered, or are not.
type MetadataQuery struct {
	// Port is a logical port or an instance.
	Port string `json:"port"`
}

// MetadataExplanation is the way of a port's requests, in order.
type MetadataExplanation struct {
	Port     string `json:"port"`
	Instance string `json:"instance,omitempty"`
	Steps    []Step `json:"steps"`
	// Works: every step is there.
	Works bool `json:"works"`
}
