package proxy

import "net/netip"

// Identity is who asks: a port of the integration bridge, as the control plane has
// published it.
type Identity struct {
	// Port is the Port_Binding's logical_port, and the key of limits and counters.
	Port string
	// Instance and Project are the Port_Binding's external_ids neutron:device_id and
	// neutron:project_id. An empty Instance is nobody's: it gets no answer but 404.
	Instance, Project string
	// Network is the Datapath_Binding's external_ids name without "neutron-".
	Network string
	// Address is the guest's own, whatever address the connection shows. Assigned: OVN has
	// it of the port, or the MAC address that it is made of; else the guest has chosen it.
	Address  netip.Addr
	Assigned bool
}

// Resolver finds the identity of a connection by its addresses. It is called for each
// connection and for each request on it, so that a port which has gone is nobody any
// more also on connections that it had.
type Resolver func(local, remote netip.AddrPort) (Identity, bool)
