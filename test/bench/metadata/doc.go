// Package metadata measures instance metadata: Sluice's one proxy, to which requests are
// steered from the taps, against the classic form, a network namespace with haproxy for
// each network.
//
// Sluice's side is the lab's scenario metadata: OVN, Open vSwitch (userspace datapath),
// machines with hybrid-plugged taps, sluiced and the proxy. The classic side is for each
// network a machine's namespace, a namespace with 169.254.169.254, a veth pair between
// the two, and haproxy with the configuration that neutron-ovn-metadata-agent writes.
// Behind haproxy's unix socket a few lines of this program sign requests and pass them
// on to the same stand-in for Nova that Sluice's proxy asks, from the same place. In the
// classic form's favour, Open vSwitch is not between machine and namespace, and neutron's
// agent is not there, which looks up and signs in Python and connects to Nova anew for
// each request.
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
