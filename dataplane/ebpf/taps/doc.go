// Package taps owns the two programs that bring metadata requests of guests to the
// metadata proxy and its answers back, tap_in and proxy_in, with their maps, pins and
// places on devices. docs/decisions/0017-metadata.md says what they do.
//
// # What is where
//
// Everything is pinned in one directory of a bpffs, as package pinned says; it belongs to
// one process that writes, but for the map heartbeat, which the proxy writes.
// What is done with devices is done in the calling thread's network namespace.
//
// # Promises
//
//   - Requests go on to the proxy, and its answers to guests, while no process of Load
//     runs. A start adopts what is pinned; programs are replaced in place.
//   - Sources gives back exactly what Put was given. A source of which a row is missing
//     or differs, as a crash leaves it, is listed without Answer, which no source that
//     was put is: Put the right one again, or Remove it as it is listed.
//   - The way back is there before the way there, and goes after it: no request gets to
//     the proxy that could not be answered.
//   - A map of a newer layout is refused: see pinned.ErrNewerLayout. In the place of one of
//     an older layout an empty one is made.
//   - What is no metadata, and all of it while the proxy gives no sign of life, passes a
//     tap unchanged, to whatever else is attached to it and to Open vSwitch.
//
// # It never
//
// creates, configures or deletes a device, gives out numbers, or touches programs,
// filters and qdiscs of others.
package taps
