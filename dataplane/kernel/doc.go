// Package kernel makes the node's own network devices: sluice-vxlan, the one
// VXLAN device in external (collect metadata) mode, and a veth pair for each
// provider bridge in use, sluice<N> with sluice<N>-ovs as a port of the bridge. Path
// makes those of VRFs on the kernel path.
//
// # Ownership
//
// A device is Sluice's if it has the alternative name "sluice:fabric",
// "sluice:bridge:BRIDGE" or "sluice:bridge-port:BRIDGE". The kernel gives
// alternative names only after creation, so a device is created with one of
// Sluice's own Ethernet addresses (fe:73:6c:75:…) and down: a device of that
// name, type and address that is down and has no alternative name is what a
// crash between the two steps leaves, and is made anew. Any other device with a
// wanted name is reconcile.ErrForeign and never touched.
//
// The addresses begin with fe because Open vSwitch gives a bridge the lowest
// address of its ports: Sluice's port must not become it.
//
// # Fail-closed
//
// Devices have no addresses, do no ARP and no IPv6, and filter the reverse path
// strictly; with no address and no route on the device that refuses every IPv4
// packet to one of the node's own addresses, also where net.ipv4.conf.all makes it
// loose: without an address loose is strict. The Attach hook runs before a
// device is up; a hook that fails leaves the device down. Sysctls that the
// kernel lacks are passed over; those that are writable are set anew by every
// Ensure and Apply, since net.ipv4.ip_forward rewrites some for all devices.
//
// It never touches routes, addresses, other links or namespaces, and never
// loads a program.
package kernel
