package kernel

import (
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// What other drivers of devices need of this one. The thread is in the device's
// namespace.

// Close brings a device to the state of the package comment, but for its programs.
func Close(h *netlink.Handle, l netlink.Link) error { return failClosed(h, l) }

// Open says what Close would change of a device.
func Open(l netlink.Link) []string { return unsettled(l, closed) }

// Find returns nil if there is no link of the name.
func Find(h *netlink.Handle, name string) (netlink.Link, error) { return find(h, name) }

// SetSysctl writes a sysctl by its path. One that is not there is passed over; one that
// cannot be written is an error only if it has another value.
func SetSysctl(path, value string) error { return sysctl(path, value) }

// Checksums tells whether a device leaves the checksums of what it sends to be filled in
// by others.
func Checksums(device string) (offloaded bool, err error) {
	v := ethtoolValue{cmd: unix.ETHTOOL_GTXCSUM}
	if err := ethtool(device, &v); err != nil {
		return false, fmt.Errorf("reading the tx offload of %s: %w", device, err)
	}
	return v.data != 0, nil
}

// OffloadChecksums sets what Checksums tells.
func OffloadChecksums(device string, on bool) error {
	v := ethtoolValue{cmd: unix.ETHTOOL_STXCSUM}
	if on {
		v.data = 1
	}
	if err := ethtool(device, &v); err != nil {
		return fmt.Errorf("setting the tx offload of %s to %t: %w", device, on, err)
	}
	return nil
}
