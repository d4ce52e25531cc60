// Package balancing measures connections to VIPs from end to end: by Sluice's eBPF, against
// connections to the same backends where there is no load balancer, and against OVN's own
// ct_lb.
//
// It is the lab's scenario lb: two OVN clouds, Open vSwitch, five HTTP servers. Two machines
// ask: c-fabric in the other cloud, whose packets come by the fabric and the gateway, where the
// load balancers hang on the router; and c-same on the backends' switch, where they hang on the
// switch. The backends are on a chassis of their own, none nearer to a client than the others.
//
// Another tenant has the same machines on the same chassis and no load balancer: where one is,
// OVN's conntrack sees packets of connections that are not balanced, too, and those would be
// no measure of a network without. What that alone costs is measured as well, by connections
// to the backends' own addresses in the network that has load balancers ("beside").
//
// The targets take turns in short rounds, in an order that changes, all in one lab. A
// connection is a request with a small answer. Direct connections go to all backends in turns,
// those to VIPs wherever they are led; the remark says how many each backend has answered.
// Each target has client ports of its own: what OVN has balanced from a port it goes on to
// translate for a while, whomever the next connection is to.
//
// Before and after, it is checked that the path is the one that is claimed: by the path that
// sluicectl shows, by the sessions that eBPF has counted, and by what Open vSwitch's
// conntrack has of the VIP. Else there is no result.
//
// What bounds connections/s is the machine's processors, which are next to never idle; a remark
// says who had them. The more of it is Open vSwitch's work, which is the same with and without load
// balancing, the less there is to see of Sluice's: what a connection costs the processors is
// shown besides. The generator and one server without a network make several times as many
// connections/s.
//
// It needs root, and touches no process or namespace but those of its lab.
package balancing
