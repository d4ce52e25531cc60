package lab

import "sync/atomic"

// lastPort is how many local ports were given out.
var lastPort atomic.Uint32

// NewPorts are the first of n local ports, below those that the kernel chooses, that no client
// has had for long. A backend that is asked again from a port of a moment ago cannot always tell
// the two apart; and where its switch has a load balancer, that ends an ovs-vswitchd 3.1 with
// the userspace datapath.
func NewPorts(n int) int {
	const first, most = 10_000, 22_000
	return first + int(lastPort.Add(uint32(n))-uint32(n))%(most-n)
}
