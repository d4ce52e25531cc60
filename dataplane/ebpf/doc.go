// Package ebpf owns Sluice's TC programs and their pinned maps: it loads,
// attaches and replaces the programs, and turns rows of pkg/intent into rows of
// the maps and back.
//
// # What is where
//
// Everything is pinned in one directory of a bpffs: maps as <name>_v<layout>,
// the programs as prog_<name> with their constants in const_<name> (and what overlay_in calls, see
// package pinned), and one link per device as
// link_<program>_<ifindex> where the kernel has tcx. vtep_guard belongs to the network
// namespace and has one link, link_vtep_guard. The C side is in /bpf; every
// struct that both sides know is generated from its BTF.
//
// # Promises
//
//   - Forwarding goes on while no process of Sluice runs. A start adopts what is
//     pinned with all its rows; programs are replaced in place, never detached
//     and attached. Programs that differ go on until others are loaded: see Open.
//   - A map with a newer layout than this build knows is refused: see
//     ErrNewerLayout; what runs goes on. Beside maps of an older layout new ones
//     are made, which take their place when they are filled: see Dataplane.Staged.
//     So does a map whose configured size changed.
//   - List of each driver reads the maps alone and gives back exactly the values
//     that Apply was given.
//   - Rows of arrays (entries, next hops, groups) carry the VNI that owns them,
//     and the programs check it. A row is not reused while something refers to
//     it, nor for a while after.
//
// # It never
//
// creates, configures or deletes a device, and knows nothing of OVN's tables or
// of BGP.
package ebpf
