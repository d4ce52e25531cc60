package lab

import "sync"

// lastPort is the one that was given out last.
var lastPort struct {
	sync.Mutex
	port int
}

// NewPorts are the first of n local ports, below those that the kernel chooses, that no client
// has had for long. A backend that is asked again from a port of a moment ago cannot always tell
// the two apart; and where its switch has a load balancer, that ends an ovs-vswitchd 3.1 with
// the userspace datapath.
func NewPorts(n int) int {
	const first, last = 10_000, 31_999
	lastPort.Lock()
	defer lastPort.Unlock()
	from := max(first, lastPort.port+1)
	if from+n-1 > last {
		from = first
	}
	lastPort.port = from + n - 1
	return from
}
