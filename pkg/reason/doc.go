// Package reason names the reasons that sluiced gives outside the packet path: of
// objects in "sluicectl status" and metrics, of components in their conditions, and
// of routes that BGP received and does not import.
//
// Each is one fixed word with dashes, declared here and nowhere else, with what it
// means and what an operator does about it; docs/reference/reasons.md is made from
// this list. tools/docgen fails when a package gives a reason that is not in it, or
// when one of it is given by none. A word never changes its meaning: people filter
// by it. Reasons for which packets are dropped are in pkg/drop.
package reason
