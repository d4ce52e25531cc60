// Package metadata measures instance metadata: Sluice's one proxy, to which requests are
// steered from the taps, against the classic form, a network namespace with haproxy for
// each network.
//
// Sluice's side is the lab's scenario metadata: OVN, Open vSwitch (userspace datapath),
// machines with hybrid-plugged taps, sluiced and the proxy. The classic side is for each
// network a machine's namespace, a namespace with 169.254.169.254, a veth pair between
// the two, and haproxy with the configuration that neutron-ovn-metadata-agent writes.
// Behind haproxy's unix socket a process signs requests, in the place of neutron's agent,
// and passes them on to the same stand-in for Nova that Sluice's proxy asks, from the same
// place. Each of them is a process of its own, as in a cloud. In the classic form's
// favour, Open vSwitch is not between machine and namespace, and the agent is a few lines
// of Go that keep connections to Nova: neutron's looks up and signs in Python and connects
// anew for each request. The agent's memory is not counted.
//
// The sides take turns in short rounds, both being up all the while. A request is a
// connection of its own, made in the machine's namespace.
//
// Memory is proportional set size (PSS) of processes, and of the kernel unreclaimable
// slab, stacks, page tables, per-CPU memory and vmalloc, each as the difference to what
// it was without metadata: to the lab with metadata.enabled: false, and to the machines'
// namespaces alone.
//
// It needs root and haproxy. It touches no process or namespace that it has not made.
package metadata
