package namespace

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/link"
)

// inner is the device in a namespace, as it has to be.
type inner struct {
	name string
	mac  intent.MAC
	mtu  int // 0: any
	// arp: its neighbours are found by ARP and ND.
	arp bool
	// filled: what it sends has its checksums, and whoever receives it need not know how
	// to fill them in.
	filled bool
	// addresses are all that it has.
	addresses []netip.Prefix
}

// found is a device in a namespace as it is.
type found struct {
	link      netlink.Link
	loUp      bool
	addresses []netip.Prefix
	// stuck are addresses of IPv6 that cannot be used yet, or at all, since duplicates
	// are looked for.
	stuck     []netip.Prefix
	offloaded bool
	knobs     []string // those with another value
}

// knob is a sysctl below /proc/sys/net.
type knob struct{ path, value string }

// knobs are the sysctls of a namespace and its device. Those of all devices come first:
// writing ip_forward sets others of each device. A new namespace has the values of IPv4
// that the VM's first one has.
func knobs(device string) []knob {
	all, dev4, dev6 := "ipv4/conf/all/", "ipv4/conf/"+device+"/", "ipv6/conf/"+device+"/"
	return []knob{
		// What waits with a listener that closes is another one's on the same address: so the
		// end of an agent's haproxy resets nobody.
		{"ipv4/tcp_migrate_req", "1"},
		{all + "forwarding", "0"}, {"ipv6/conf/all/forwarding", "0"}, {all + "rp_filter", "0"}, {all + "accept_redirects", "0"},
		{dev4 + "forwarding", "0"}, {dev4 + "rp_filter", "0"}, {dev4 + "accept_redirects", "0"}, {dev4 + "send_redirects", "0"},
		// The first address of a subnet goes, and the others stay.
		{dev4 + "promote_secondaries", "1"},
		// No address of the kernel's own making when IPv6 comes.
		{dev6 + "addr_gen_mode", "1"}, {dev6 + "disable_ipv6", "0"}, {dev6 + "accept_ra", "0"}, {dev6 + "autoconf", "0"},
		{dev6 + "forwarding", "0"}, {dev6 + "accept_redirects", "0"},
	}
}

func (k knob) file() string { return filepath.Join("/proc/sys/net", k.path) }

// without says which have other values. A kernel without IPv6 has none of its sysctls.
func without(knobs []knob) (out []string) {
	for _, k := range knobs {
		got, err := os.ReadFile(k.file())
		if value := strings.TrimSpace(string(got)); err == nil && value != k.value {
			out = append(out, fmt.Sprintf("%s is %s and not %s", k.path, value, k.value))
		}
	}
	return out
}

// look reads a device of the namespace that the thread is in; nil: there is none.
func look(h *netlink.Handle, name string) (*found, error) {
	l, err := kernel.Find(h, name)
	if err != nil || l == nil {
		return nil, err
	}
	lo, err := h.LinkByName("lo")
	if err != nil {
		return nil, fmt.Errorf("reading lo: %w", err)
	}
	f := &found{link: l, loUp: up(lo), knobs: without(knobs(name))}
	if f.offloaded, err = kernel.Checksums(name); err != nil {
		return nil, err
	}
	addrs, err := link.Dump(func() ([]netlink.Addr, error) { return h.AddrList(l, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("addresses of %s: %w", name, err)
	}
	for _, a := range addrs {
		ip, ok := netip.AddrFromSlice(a.IP)
		if !ok {
			continue
		}
		ones, _ := a.Mask.Size()
		p := netip.PrefixFrom(ip.Unmap(), ones)
		f.addresses = append(f.addresses, p)
		if a.Flags&(unix.IFA_F_TENTATIVE|unix.IFA_F_DADFAILED) != 0 {
			f.stuck = append(f.stuck, p)
		}
	}
	slices.SortFunc(f.addresses, netip.Prefix.Compare)
	return f, nil
}

// differences says what settle would change of the device.
func (d inner) differences(f *found) (out []string) {
	if f == nil {
		return []string{d.name + " is missing"}
	}
	say := func(when bool, format string, args ...any) {
		if when {
			out = append(out, fmt.Sprintf(d.name+" "+format, args...))
		}
	}
	a := f.link.Attrs()
	say(!f.loUp, "has a namespace whose lo is down")
	say(!up(f.link), "is down")
	say(string(a.HardwareAddr) != string(d.mac[:]), "has the address %s and not %s", a.HardwareAddr, d.mac)
	say(d.mtu != 0 && a.MTU != d.mtu, "has the MTU %d and not %d", a.MTU, d.mtu)
	say(d.arp == (a.RawFlags&unix.IFF_NOARP != 0), "has ARP, or none, against what it should")
	say(d.filled == f.offloaded, "leaves checksums to others, or not, against what it should")
	for _, p := range d.addresses {
		say(!slices.Contains(f.addresses, p), "lacks the address %s", p)
	}
	for _, p := range f.addresses {
		say(!slices.Contains(d.addresses, p), "has the address %s", p)
	}
	for _, p := range f.stuck {
		say(true, "cannot use its address %s", p)
	}
	return append(out, f.knobs...)
}

// settle makes the device as it has to be, and up. The thread is in the namespace. The
// address of the device is first: a packet with another one would teach switches.
func (d inner) settle(h *netlink.Handle) error {
	f, err := look(h, d.name)
	if err != nil {
		return err
	}
	if f == nil {
		return fmt.Errorf("device %s has gone", d.name)
	}
	if err := d.settleLink(h, f); err != nil {
		return err
	}
	for _, k := range knobs(d.name) {
		if err := kernel.SetSysctl(k.file(), k.value); err != nil {
			return err
		}
	}
	if !f.loUp {
		if err := setUp(h, "lo"); err != nil {
			return err
		}
	}
	if !up(f.link) {
		if err := setUp(h, d.name); err != nil {
			return err
		}
	}
	if len(d.differences(f)) > 0 {
		// Addresses came and went with the MTU, or with a sysctl.
		if f, err = look(h, d.name); err != nil || f == nil {
			return errors.Join(err, fmt.Errorf("device %s has changed meanwhile", d.name))
		}
	}
	return d.settleAddresses(h, f)
}

func setUp(h *netlink.Handle, name string) error {
	l, err := h.LinkByName(name)
	if err == nil {
		err = h.LinkSetUp(l)
	}
	if err != nil {
		return fmt.Errorf("setting %s up: %w", name, err)
	}
	return nil
}

func (d inner) settleLink(h *netlink.Handle, f *found) error {
	a := f.link.Attrs()
	if string(a.HardwareAddr) != string(d.mac[:]) {
		if err := h.LinkSetHardwareAddr(f.link, hardware(d.mac)); err != nil {
			return fmt.Errorf("setting the address %s of %s: %w", d.mac, d.name, err)
		}
	}
	if d.mtu != 0 && a.MTU != d.mtu {
		if err := h.LinkSetMTU(f.link, d.mtu); err != nil {
			return fmt.Errorf("setting MTU %d of %s: %w", d.mtu, d.name, err)
		}
	}
	arp := h.LinkSetARPOff
	if d.arp {
		arp = h.LinkSetARPOn
	}
	if d.arp == (a.RawFlags&unix.IFF_NOARP != 0) {
		if err := arp(f.link); err != nil {
			return fmt.Errorf("ARP of %s: %w", d.name, err)
		}
	}
	if d.filled != f.offloaded {
		return nil
	}
	return kernel.OffloadChecksums(d.name, !d.filled)
}

// settleAddresses adds what is missing before it takes away what is not wanted.
func (d inner) settleAddresses(h *netlink.Handle, f *found) error {
	var errs []error
	change := func(what string, p netip.Prefix, do func(netlink.Link, *netlink.Addr) error) {
		a := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
		if p.Addr().Is6() {
			// The address is this node's alone, whatever answers for it elsewhere.
			a.Flags = unix.IFA_F_NODAD
		}
		err := do(f.link, a)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s address %s of %s: %w", what, p, d.name, err))
		}
	}
	for _, p := range f.stuck {
		change("removing", p, h.AddrDel)
	}
	for _, p := range d.addresses {
		if !slices.Contains(f.addresses, p) || slices.Contains(f.stuck, p) {
			change("adding", p, h.AddrReplace)
		}
	}
	for _, p := range f.addresses {
		if !slices.Contains(d.addresses, p) && !slices.Contains(f.stuck, p) {
			change("removing", p, h.AddrDel)
		}
	}
	return errors.Join(errs...)
}

// usable are the addresses that this kernel can have: one without IPv6 has no such.
func usable(addresses ...netip.Prefix) []netip.Prefix {
	six := HasIPv6()
	return slices.DeleteFunc(addresses, func(p netip.Prefix) bool { return !six && p.Addr().Is6() })
}

// HasIPv6 tells whether the kernel has IPv6: booted with ipv6.disable=1 it has not.
func HasIPv6() bool {
	_, err := os.Stat("/proc/sys/net/ipv6/conf")
	return err == nil
}
