// Package reconcile makes actual tables equal to wanted ones.
//
// A Driver knows one kind of actual thing: an eBPF map, a link, an OVS flow. A
// Table holds what is wanted of it, what the driver read back, and what differs.
// A Pipeline puts tables in order: additions run from the first table to the
// last, removals from the last to the first, so that nothing refers to a row
// that is not there yet or is gone already. A part of a table's rows may come at an
// earlier place.
//
// A row is absent, present, or unknown: a call of the driver that is to write or delete it
// runs, or has failed, was cut off or timed out. Of an unknown row the table keeps the
// values that it may have, which are what was there and what was tried. It is not
// programmed. Wanted, it is written again, also when what was there is wanted again.
// Unwanted, it is deleted, unless Hold or Linger keeps one of its values. A List that
// succeeds tells what it is; one that fails changes nothing.
//
// A driver runs one call at a time. A pass waits for a call for Grace, which ordinary calls
// do not take, and so keeps the order above. Then it goes on without the driver: the table
// has no turn until the call returns, and the result of the call counts whenever it comes.
// A table that cannot be read back has no turn, either.
// What a gate makes wait for the table's rows waits. Beside that a row comes before, or goes
// before, rows of such a table only where TableOptions.Behind says that the two have nothing
// to do with each other.
//
// Promises:
//   - A change that comes while a pass runs is made whole by the next one: its
//     additions come before its removals, too.
//   - A gate that closes has its row go, or not come, also when that happens while the row,
//     or one before it, is being written. A key is to be touched when its gate changes.
//   - The work of a pass is proportional to the keys that changed or failed.
//   - A key that fails is retried with backoff and stops no other key; its
//     error is kept with the key until it succeeds.
//   - A driver lists only what carries Sluice's mark, so nothing else is ever
//     deleted. A foreign object with a wanted name is the error ErrForeign of
//     that key.
//   - A table that was never told what is wanted deletes nothing: see Table.Set.
//     Nor does one that is held: see TableOptions.Hold.
//   - No table waits for the slow driver of another.
//   - A pass that is ended leaves rows as they are, and calls none of them failed or unknown.
//   - Dry, a pipeline computes the same difference and applies none of it.
package reconcile
