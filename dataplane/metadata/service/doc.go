// Package service is the running metadata proxy: it has the listeners, in the namespace
// that requests are steered to and in those of networks, and one proxy.Server that answers
// on all of them.
//
// It knows of the daemon beside it what the file of package identity says, and the
// namespaces that are there; it asks nobody, and goes on without.
//
// Promises:
//   - Nobody is answered before the file has been read once: connections wait. From then
//     on the last file that could be read counts.
//   - A listener follows its namespace: one that was replaced, or whose device was, is
//     listened in anew, and one that has gone is held no longer: a socket would keep it,
//     and its devices, alive.
//   - The heart beats only while the steered listeners are open and their connections are
//     taken. Whoever steers stops when it does not.
//   - HandOver loses no connection that waits to be taken, or waits for a request; requests
//     under way have DrainTime. Sockets that are in a Store are there, listening, when the
//     process ends in any way.
//
// It makes and removes no namespace, device or address.
package service
