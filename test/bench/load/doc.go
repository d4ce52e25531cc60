// Package load makes requests and times them. A request is a GET on a connection of its
// own, from before the connection is opened to the end of the answer.
//
// Rounds are made where they are asked for, or by a Generator: a process of its own, in
// the namespace of a machine, which makes one round for each line that it reads and says
// in a line what it took. In it no connection costs a change of namespaces, and its
// processor time is told apart from that of everything else.
package load
