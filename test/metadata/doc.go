// Package metadata holds the end-to-end tests of instance metadata: real OVN, Open
// vSwitch, sluiced, its proxy and cloud-init in the lab's scenario metadata, where
// VMs of two tenants have the same addresses, with a stand-in for Nova that checks
// signatures as Nova does. They are judged by what VMs are answered.
//
// The chassis m1 steers requests from the taps, m2 has metadata.path: namespace. A test
// that stops something asks all the while, and no request may be refused or end without
// an answer. Nothing is judged by how long it took; times are printed.
package metadata
