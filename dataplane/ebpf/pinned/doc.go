// Package pinned has what outlives the process: the directory of a bpffs that one
// process writes, programs with their constants, and the places of programs on
// devices, which are tcx links or filters of the clsact qdisc.
//
// # What is where
//
// A program is prog_<name> and its constants are const_<name>; the program that it calls is
// prog_<name>_called, by an array page_<name>_<number>_0; its link on a device is
// link_<name>_<ifindex>. A filter carries the name sluice_<name> instead, and needs no
// pin. Maps are <name>_v<layout>.
//
// # Promises
//
//   - A name in the directory always leads to something complete: what takes the
//     place of another is pinned beside it, and renamed.
//   - A program is replaced in place, with what it calls: no packet sees none of the two, or both.
//   - Links, filters and pins of others are never changed. Where they are in the way
//     the error wraps reconcile.ErrForeign.
//
// # It never
//
// knows what a program does, or what is in a map.
package pinned
