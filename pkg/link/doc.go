// Package link tells facts about a node's links: its VTEP address, its
// addresses, and the MTU that a packet to a tunnel endpoint may have.
//
// It owns the retry of interrupted netlink dumps (Dump). It promises that what
// it returns was read in one uninterrupted pass, and never changes a link.
package link
