// Package reconcile makes actual tables equal to wanted ones.
//
// A Driver knows one kind of actual thing: an eBPF map, a link, an OVS flow. A
// Table holds what is wanted of it, what the driver read back, and what differs.
// A Pipeline puts tables in order: additions run from the first table to the
// last, removals from the last to the first, so that nothing refers to a row
// that is not there yet or is gone already. A part of a table's rows may come at an
// earlier place.
//
// Promises:
//   - A change that comes while a pass runs is made whole by the next one: its
//     additions come before its removals, too.
//   - The work of a pass is proportional to the keys that changed or failed.
//   - A key that fails is retried with backoff and stops no other key; its
//     error is kept with the key until it succeeds.
//   - A driver lists only what carries Sluice's mark, so nothing else is ever
//     deleted. A foreign object with a wanted name is the error ErrForeign of
//     that key.
//   - A table that was never told what is wanted deletes nothing: see Table.Set.
//     Nor does one that is held: see TableOptions.Hold.
//   - A pass that is ended leaves rows as they are, and calls none of them failed.
//   - Dry, a pipeline computes the same difference and applies none of it.
package reconcile
