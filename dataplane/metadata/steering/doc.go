// Package steering is the driver of intent.MetadataPort: it gives guests behind taps
// their numbers, and sees to it that file, maps and programs say the same of them.
//
// A port without a tap has no number: it is served in its network's namespace, and is in
// the file alone, where the proxy finds it by its address.
//
// # Order
//
// A number is in the file before it is in the maps, and out of the maps before it is out of
// the file. The program is put on a tap when the maps have its rows, and taken off when
// they have none any more. So of what a crash leaves nothing is served to the wrong
// VM, and List tells it from what was asked for:
//
//	add      file, maps, program
//	remove   maps, program, file
//	change   as remove for the numbers that go, then as add; the file is written once
//
// # Numbers
//
// A guest keeps its number as long as its port has the same tap and VLAN, and is the same
// instance's: one that becomes known is no change. A number that was given back rests
// (package identity).
//
// # Devices
//
// The index of a device says nothing when the device has gone: the kernel gives it out
// again. So a row counts only while the device has the tap's name, and what the maps have of
// an index under another name is removed before anything is added to it.
package steering
