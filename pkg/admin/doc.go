// Package admin is the conversation between sluicectl and a daemon: HTTP with
// JSON over a unix socket that only root can open.
//
// It owns the socket, and the lock that keeps a second daemon away. A program has its
// endpoints with their types in a package of its own (nodeapi is that of sluiced). A daemon
// attaches functions to endpoints with Handle and HandleStream; a client calls the same
// endpoints with Call and Follow, so that both sides agree by type.
//
// Promises:
//   - Of two daemons with one state directory or one socket, one runs; the other
//     gets ErrLocked and the process id of the first. A lock dies with its
//     process, so nothing is left to clean up by hand.
//   - The socket appears at its path complete and with mode 0600, replacing a
//     stale one in one step. A file there that is no socket is left alone.
//   - A change of which the client says that nothing was changed is never carried out: a daemon that
//     was stopped meanwhile drops it. The body of a request is sent when the daemon asks for it
//     (Expect: 100-continue, RFC 9110 section 10.1.1); a client that gives up later says that the
//     outcome is not known (ErrUnknown).
//   - A handler looks at the deadline, which ends its context, just before it changes something. A
//     daemon that is stopped after that look makes the change when it goes on.
//   - Endpoints answer while the daemon starts, with what is known so far.
//
// It knows nothing of OVN, BGP, the data plane or what is asked.
package admin
