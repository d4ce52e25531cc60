package kernel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Attach puts the programs on a device that is not up yet. It is called again
// for a device that is in use, and then has to leave traffic running. The
// calling thread is in the device's namespace.
type Attach func(ctx context.Context, name string, ifindex int) error

// knob is a sysctl under net/FAMILY/conf/DEVICE.
type knob struct{ family, name, value string }

// closed are the sysctls of a fail-closed device.
var closed = []knob{
	{"ipv6", "disable_ipv6", "1"},
	{"ipv6", "accept_ra", "0"},
	{"ipv6", "autoconf", "0"},
	{"ipv6", "forwarding", "0"},
	{"ipv6", "accept_redirects", "0"},
	{"ipv6", "accept_source_route", "0"},
	{"ipv4", "rp_filter", "1"},
	{"ipv4", "forwarding", "0"},
	{"ipv4", "accept_local", "0"},
	{"ipv4", "route_localnet", "0"},
	{"ipv4", "accept_redirects", "0"},
	{"ipv4", "accept_source_route", "0"},
	{"ipv4", "proxy_arp", "0"},
	{"ipv4", "arp_accept", "0"},
	{"ipv4", "src_valid_mark", "0"},
	{"ipv4", "send_redirects", "0"},
}

// with replaces the values of some.
func with(knobs []knob, changes ...knob) []knob {
	out := slices.Clone(knobs)
	for _, c := range changes {
		i := slices.IndexFunc(out, func(k knob) bool { return k.family == c.family && k.name == c.name })
		out[i] = c
	}
	return out
}

// failClosed brings a device to the state of the package comment.
func failClosed(h *netlink.Handle, l netlink.Link) error { return settle(h, l, closed) }

// settle makes a device one without ARP, without addresses of its own making, and
// with the sysctls. The order does not matter: the device is down when it is new.
func settle(h *netlink.Handle, l netlink.Link, knobs []knob) error {
	name := l.Attrs().Name
	if err := h.LinkSetARPOff(l); err != nil {
		return fmt.Errorf("switching ARP off on %s: %w", name, err)
	}
	// A kernel without IPv6 has no such attribute to set.
	if _, err := os.Stat("/proc/sys/net/ipv6/conf/" + name); err == nil {
		if err := h.LinkSetIP6AddrGenMode(l, nl6None); err != nil {
			return fmt.Errorf("address generation mode of %s: %w", name, err)
		}
	}
	for _, k := range knobs {
		if err := sysctl(k.path(name), k.value); err != nil {
			return fmt.Errorf("device %s: %w", name, err)
		}
	}
	return nil
}

// nl6None is IN6_ADDR_GEN_MODE_NONE.
const nl6None = 1

// sysctl writes a knob. One that is not there is passed over; one that cannot be
// written is an error only if it has another value.
func sysctl(path, value string) error {
	old, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && strings.TrimSpace(string(old)) == value {
		return nil
	}
	if err := os.WriteFile(path, []byte(value), 0); err != nil {
		return fmt.Errorf("setting sysctl %s to %s: %w", path, value, err)
	}
	return nil
}

// readSysctl reads a value by three system calls. os.ReadFile would have the poller follow the file
// too, which is most of the work of a look at all devices.
func readSysctl(path string) (string, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var value [64]byte
	n, err := unix.Read(fd, value[:])
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(value[:n])), nil
}

func (k knob) path(device string) string {
	return filepath.Join("/proc/sys/net", k.family, "conf", device, k.name)
}

// isClosed tells whether a device still is as failClosed leaves it.
func isClosed(l netlink.Link) bool { return isSettled(l, closed) }

// isSettled tells whether a device still is as settle leaves it.
func isSettled(l netlink.Link, knobs []knob) bool { return len(unsettled(l, knobs)) == 0 }

// unsettled says what settle would change.
func unsettled(l netlink.Link, knobs []knob) (out []string) {
	a := l.Attrs()
	for _, k := range knobs {
		if value, err := readSysctl(k.path(a.Name)); err == nil && value != k.value {
			out = append(out, fmt.Sprintf("%s has %s %s=%s and not %s", a.Name, k.family, k.name, value, k.value))
		}
	}
	if a.RawFlags&unix.IFF_NOARP == 0 {
		out = append(out, a.Name+" answers ARP")
	}
	return out
}

// offloads are what sluice<N> must not leave to a userspace datapath, which
// reads frames from a packet socket and finishes none of them.
var offloads = []struct {
	name     string
	get, set uint32
}{
	{"tx", unix.ETHTOOL_GTXCSUM, unix.ETHTOOL_STXCSUM},
	{"tso", unix.ETHTOOL_GTSO, unix.ETHTOOL_STSO},
	{"gso", unix.ETHTOOL_GGSO, unix.ETHTOOL_SGSO},
	{"gro", unix.ETHTOOL_GGRO, unix.ETHTOOL_SGRO},
}

// ethtoolValue is struct ethtool_value of linux/ethtool.h.
type ethtoolValue struct{ cmd, data uint32 }

// ethtoolRequest is struct ifreq with ifr_data, as SIOCETHTOOL takes it.
type ethtoolRequest struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [16]byte
}

func ethtool(device string, value *ethtoolValue) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var req ethtoolRequest
	copy(req.name[:unix.IFNAMSIZ-1], device)
	req.data = unsafe.Pointer(value)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req))); errno != 0 {
		return errno
	}
	return nil
}

func offloadsOff(device string) error {
	for _, o := range offloads {
		if err := ethtool(device, &ethtoolValue{cmd: o.set}); err != nil {
			return fmt.Errorf("switching %s offload off on %s: %w", o.name, device, err)
		}
	}
	return nil
}

func offloadsAreOff(device string) bool {
	return !slices.ContainsFunc(offloads, func(o struct {
		name     string
		get, set uint32
	}) bool {
		v := ethtoolValue{cmd: o.get}
		return ethtool(device, &v) != nil || v.data != 0
	})
}

// find returns nil if there is no link of the name.
func find(h *netlink.Handle, name string) (netlink.Link, error) {
	l, err := h.LinkByName(name)
	if _, missing := errors.AsType[netlink.LinkNotFoundError](err); missing {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading link %s: %w", name, err)
	}
	return l, nil
}

func has(l netlink.Link, mark string) bool { return slices.Contains(l.Attrs().AltNames, mark) }

func hardware(m intent.MAC) net.HardwareAddr { return net.HardwareAddr(m[:]) }

func up(l netlink.Link) bool { return l.Attrs().Flags&net.FlagUp != 0 }

// unfinished tells whether a crash left the link between creation and mark.
func unfinished(l netlink.Link, kind string, mac intent.MAC) bool {
	a := l.Attrs()
	return l.Type() == kind && !up(l) && len(a.AltNames) == 0 && string(a.HardwareAddr) == string(mac[:])
}
