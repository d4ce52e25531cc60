package main

import (
	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// vips lists the VIPs of one VRF, or of all for 0.
func (n *node) vips(vni intent.VNI) []status.VIP {
	n.d.mu.Lock()
	balanced := n.d.translator.Balanced()
	n.d.mu.Unlock()
	out := []status.VIP{}
	for _, b := range balanced {
		k := b.VIP.Key
		if vni != 0 && vni != k.VNI {
			continue
		}
		v := status.VIP{
			VNI: k.VNI, Address: k.Addr, Port: k.Port, Protocol: k.Protocol, LoadBalancer: b.Balancer, Path: string(b.Choice.Path),
			Reason: b.Choice.Reason, ReasonDetail: b.Choice.Detail, Standby: b.Standby, State: status.OK, Slots: b.VIP.Slots, Backends: b.VIP.Backends.All(),
		}
		if b.Choice.Path == loadbalancer.PathEBPF {
			v.State, _, v.Error = stateOf(n.tables.VIPs.State(k))
		}
		out = append(out, v)
	}
	return out
}
