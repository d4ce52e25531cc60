// Package vmports decides by which device of this node a port's frames come in: rows of OVN
// and of the local Open vSwitch database, and devices that were found, in; a device and a
// VLAN out, or why there is none.
//
// It is pure: whoever looks for devices is package dataplane/tap.
package vmports
