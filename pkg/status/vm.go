package status

// VM is a VM of this node on a switch that has VIPs.
type VM struct {
	// Port is the VM's Logical_Switch_Port, Switch the name of its switch.
	Port   string `json:"port"`
	Switch string `json:"switch"`
	// Device is the VM's tap, and VLAN the tag of a trunk's subport.
	Device string `json:"device,omitempty"`
	VLAN   uint16 `json:"vlan,omitempty"`
	// Path is what balances the VM's new sessions: ebpf, on its tap, or ovn. Reason is a word of
	// reasons.md.
	Path         string `json:"path"`
	Reason       string `json:"reason"`
	ReasonDetail string `json:"reasonDetail,omitempty"`
	// State is whether the rows and programs of the tap are in place.
	State State  `json:"state"`
	Error string `json:"error,omitempty"`
}
