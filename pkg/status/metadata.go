package status

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Metadata is the answer to "sluicectl metadata ports".
type Metadata struct {
	// Used tells whether metadata is served at all; Note says why not.
	Used bool   `json:"used"`
	Note string `json:"note,omitempty"`
	// Proxy is the fault of the proxy: its last heartbeat is older than metadata.staleAfter, or
	// absent. Requests are left to OVN meanwhile.
	Proxy string         `json:"proxy,omitempty"`
	Ports []MetadataPort `json:"ports"`
}

// MetadataPort is a VM's port that is bound to this node.
type MetadataPort struct {
	// Port is Port_Binding.logical_port.
	Port     string `json:"port"`
	Network  string `json:"network,omitempty"`
	Instance string `json:"instance,omitempty"`
	Project  string `json:"project,omitempty"`
	// Served is how the port's requests reach the proxy.
	Served MetadataPath `json:"served"`
	// Reason and Detail say why requests are not steered from the tap.
	Reason string `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Device is the tap, or the device in the network's namespace, and VLAN the tag of a
	// trunk's subport.
	Device string `json:"device,omitempty"`
	VLAN   uint16 `json:"vlan,omitempty"`
	// Addresses are the addresses from which the port may ask.
	Addresses intent.PortAddressSet `json:"addresses"`
	// Programmed: all rows are programmed. Error is why they are not.
	Programmed bool   `json:"programmed"`
	Error      string `json:"error,omitempty"`
}

// At is the origin of the port's requests: a device, and the VLAN of a trunk's subport on it.
func (p MetadataPort) At() string {
	if p.VLAN == 0 {
		return p.Device
	}
	return fmt.Sprintf("%s.%d", p.Device, p.VLAN)
}

// Find is the VM's port that a name means: the name of the port, its instance, its
// tap, or one of its addresses; nil if there is none. What several VMs have is an
// error that lists them.
func (m Metadata) Find(name string) (*MetadataPort, error) {
	for _, means := range []func(MetadataPort) bool{
		func(p MetadataPort) bool { return p.Port == name },
		func(p MetadataPort) bool { return p.Instance != "" && p.Instance == name },
	} {
		for i, p := range m.Ports {
			if means(p) {
				return &m.Ports[i], nil
			}
		}
	}
	addr, _ := netip.ParseAddr(name)
	var found *MetadataPort
	var all []string
	for i, p := range m.Ports {
		if p.Served != FromNamespace && p.Device != "" && p.At() == name || addr.IsValid() && p.hasAddress(addr) {
			found = &m.Ports[i]
			all = append(all, fmt.Sprintf("%s of instance %s on network %s", p.Port, p.Instance, p.Network))
		}
	}
	if len(all) > 1 {
		return nil, fmt.Errorf("several VMs here have %s, name one of the ports: %s", name, strings.Join(all, "; "))
	}
	return found, nil
}

func (p MetadataPort) hasAddress(a netip.Addr) bool {
	for _, g := range p.Addresses.All() {
		if g.Addr == a {
			return true
		}
	}
	return false
}

// MetadataPath is how requests of a port reach the proxy.
type MetadataPath string

// The paths.
const (
	// FromTap: eBPF steers them from the VM's tap.
	FromTap MetadataPath = "tap"
	// FromNamespace: OVN delivers them to the namespace of the network's metadata port.
	FromNamespace MetadataPath = "namespace"
	// LeftToOVN: OVN handles the requests without Sluice.
	LeftToOVN MetadataPath = "ovn"
)

// MetadataQuery asks why a port's requests are answered or not.
type MetadataQuery struct {
	// Port is a logical port, or the instance, address or tap of one VM.
	Port string `json:"port"`
}

// MetadataExplanation is the path of a port's requests, step by step.
type MetadataExplanation struct {
	Port     string `json:"port"`
	Instance string `json:"instance,omitempty"`
	Steps    []Step `json:"steps"`
	// Works: every step is found.
	Works bool `json:"works"`
}
