// Package netns runs functions in another network namespace, and makes named ones.
//
// It owns the one place of the project where a thread changes its namespace.
// Everything that looks at the thread's namespace (netlink sockets, ioctls,
// /proc/sys/net, /proc/thread-self/net, bpf attach by ifindex) is right inside
// the function that Do runs, and only there.
//
// Promises:
//   - The function runs on a thread that no other goroutine shares.
//   - A thread that could not be brought back is never used again: the Go
//     runtime ends it.
//   - The zero Namespace is the one that the process was started in.
//   - A namespace that Create made is as prepare left it from the moment that it has
//     its name.
package netns
